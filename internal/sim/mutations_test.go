package sim

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../.."

// mutated gives the edited files of a mutation.
func mutated(t *testing.T, m Mutation) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range m.Edits {
		path := filepath.Join(root, e.File)
		text, ok := out[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		text, err := e.Apply(text)
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		out[path] = text
	}
	return out
}

// TestMutationsStillApply fails when the product has moved away from a
// mutation: it would prove nothing any more.
func TestMutationsStillApply(t *testing.T) {
	ms, err := Mutations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		mutated(t, m)
		if f, _ := ParseFocus(m.Focus); len(m.Edits) == 0 && f.Break == (Break{}) {
			t.Errorf("%s breaks nothing", m.Name)
		}
	}
}
