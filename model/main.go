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
		fmt.Fprintln(os.Stderr, "usage: mc WORLD... | mc ablate RULE [WORLD]")
		os.Exit(2)
	}
	if os.Args[1] == "ablate" {
		ablate(os.Args[2:])
		return
	}
	for _, a := range os.Args[1:] {
		for _, c := range worlds() {
			if c.Name == a || strings.HasSuffix(a, "*") && strings.HasPrefix(c.Name, a[:len(a)-1]) {
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
	off := switches[rule]
	if off == nil {
		fmt.Fprintf(os.Stderr, "no rule %q\n", rule)
		os.Exit(2)
	}
	for _, c := range worlds() {
		if !strings.HasPrefix(c.Name, "fix-w") && !strings.HasPrefix(c.Name, "fix-x") && !strings.HasPrefix(c.Name, "r-") {
			continue
		}
		if only != "" && c.Name != only {
			continue
		}
		before := c
		off(&c)
		if only == "" && before.same(c) {
			continue
		}
		c.Name += " without/with " + rule
		if c.MaxSt > 700000 && only == "" {
			c.MaxSt = 700000
		}
		if run(c) {
			return
		}
	}
	fmt.Println("== NOT CAUGHT", rule)
}
