// Command mc explores small worlds of the protocol, every interleaving.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: mc WORLD... | mc list | mc ablate RULE[+RULE] [WORLD]   (a world may end in *)")
		os.Exit(2)
	}
	if os.Args[1] == "ablate" {
		ablate(os.Args[2:])
		return
	}
	if os.Args[1] == "list" {
		for _, c := range worlds() {
			if c.R {
				fmt.Printf("%-22s %s\n", c.Name, c.Shows)
			}
		}
		return
	}
	for _, a := range os.Args[1:] {
		for _, c := range worlds() {
			if matches(c.Name, a) {
				if c.Shows != "" {
					fmt.Println("-- " + c.Shows)
				}
				run(c)
				runtime.GC()
			}
		}
	}
}

// ablate switches one rule, until a world breaks.
func ablate(args []string) {
	rule, only := args[0], ""
	if len(args) > 1 {
		only = args[1]
	}
	var off []func(*Cfg)
	for _, r := range strings.Split(rule, "+") {
		f := switches[r]
		if f == nil {
			fmt.Fprintf(os.Stderr, "no rule %q\n", r)
			os.Exit(2)
		}
		off = append(off, f)
	}
	for _, c := range worlds() {
		if !strings.HasPrefix(c.Name, "fix-w") && !strings.HasPrefix(c.Name, "fix-x") && !strings.HasPrefix(c.Name, "r-") {
			continue
		}
		if only != "" && !matches(c.Name, only) {
			continue
		}
		before := c
		for _, f := range off {
			f(&c)
		}
		if c.Name != only && before.same(c) {
			continue
		}
		c.Name += " without/with " + rule
		if c.MaxSt > 700000 && before.Name != only {
			c.MaxSt = 700000
		}
		if run(c) {
			return
		}
	}
	fmt.Println("== NOT CAUGHT", rule)
}

func matches(name, pattern string) bool {
	return name == pattern || strings.HasSuffix(pattern, "*") && strings.HasPrefix(name, pattern[:len(pattern)-1])
}
