package sim

import (
	"embed"
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"
)

// A Mutation is a rule of the protocol taken out of the product, to show that
// the simulation would notice. It is applied to a copy of the source.
type Mutation struct {
	Name  string // of its file
	About string
	Focus string
	Seeds int
	World string // a small world that catches it too
	By    string // package and test that catch it, where no schedule can: another rule stands before it
	Edits []Edit
}

// Edit replaces a piece of a file's text, which must be there once.
type Edit struct{ File, Old, New string }

//go:embed mutations/*.txt
var mutationFiles embed.FS

// Mutations reads them all, sorted by name.
func Mutations() ([]Mutation, error) {
	names, err := fs.Glob(mutationFiles, "mutations/*.txt")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out []Mutation
	for _, n := range names {
		text, err := mutationFiles.ReadFile(n)
		if err != nil {
			return nil, err
		}
		m, err := parseMutation(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		m.Name = strings.TrimSuffix(strings.TrimPrefix(n, "mutations/"), ".txt")
		out = append(out, m)
	}
	return out, nil
}

// parseMutation reads the form: lines "about:", "focus:", "seeds:", "world:", "by:", "file:",
// then the old text between <<< and ===, the new one between === and >>>.
func parseMutation(text string) (Mutation, error) {
	m := Mutation{Seeds: 1000}
	var e Edit
	in := ""
	for i, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case line == "<<<":
			in, e.Old, e.New = "old", "", ""
		case line == "===" && in == "old":
			in = "new"
		case line == ">>>" && in == "new":
			in = ""
			e.Old, e.New = strings.TrimSuffix(e.Old, "\n"), strings.TrimSuffix(e.New, "\n")
			m.Edits = append(m.Edits, e)
		case in == "old":
			e.Old += line + "\n"
		case in == "new":
			e.New += line + "\n"
		case line == "":
		case key == "about":
			m.About = value
		case key == "focus":
			m.Focus = value
		case key == "file":
			e.File = value
		case key == "world":
			m.World = value
		case key == "by":
			m.By = value
		case key == "seeds":
			n, err := strconv.Atoi(value)
			if err != nil {
				return m, fmt.Errorf("line %d: %w", i+1, err)
			}
			m.Seeds = n
		default:
			return m, fmt.Errorf("line %d: %q is not understood", i+1, line)
		}
	}
	if in != "" || m.About == "" {
		return m, fmt.Errorf("an edit does not end, or there is no about")
	}
	if _, err := ParseFocus(m.Focus); err != nil {
		return m, err
	}
	if m.World != "" {
		_, err := WorldNamed(m.World)
		return m, err
	}
	return m, nil
}

// Apply edits a file's text.
func (e Edit) Apply(text string) (string, error) {
	if n := strings.Count(text, e.Old); n != 1 {
		return "", fmt.Errorf("%s: the text to replace is there %d times, want once:\n%s", e.File, n, e.Old)
	}
	return strings.Replace(text, e.Old, e.New, 1), nil
}
