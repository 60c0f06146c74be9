package config

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the code says now into testdata")

// The environment of all tests.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{
		"EMPTY":  "",
		"PORT":   "9092",
		"SECRET": "hunter2",
		"INJECT": "a, b]\nredis: {horizon: 1s}",
		"NESTED": "${SECRET}",
	}[name]
	return value, ok
}

// Blocks of testdata/bad.txt: `### what it is`, the file, `--- says`, the messages.
func TestEachBadFileIsToldByLineAndCure(t *testing.T) {
	const path = "testdata/bad.txt"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	blocks := strings.Split(string(data), "### ")
	for _, block := range blocks[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		text, want, _ := strings.Cut(rest, "--- says\n")
		_, err := Parse("sink.yaml", []byte(text), testEnv)
		got := "nothing: it is good\n\n"
		if err != nil {
			got = err.Error() + "\n\n"
			var invalid *Invalid
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Errorf("%s: %T is no *Invalid with problems", name, err)
			}
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: the message shows a secret: %s", name, got)
		}
		if got != want && !*update {
			t.Errorf("%s\n got: %swant: %s", name, got, want)
		}
		out.WriteString("### " + name + "\n" + text + "--- says\n" + got)
	}
	if len(blocks) < 60 {
		t.Errorf("only %d bad files were tried", len(blocks)-1)
	}
	if *update {
		if err := os.WriteFile(path, []byte(blocks[0]+out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
