// Package docs holds the pages of what was tried, and checks what they name.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	named  = regexp.MustCompile(`\b([a-z0-9]+)\.((?:Test|Fuzz)[A-Z]\w*)`)
	caseID = regexp.MustCompile(`^\| ([A-K]\d+) \|`)
)

// A page that names tests which are gone proves nothing.
func TestFieldCasesNameTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("field-cases.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf(t)
	cases := 0
	for line := range strings.Lines(string(page)) {
		id := caseID.FindStringSubmatch(line)
		if id == nil {
			continue
		}
		cases++
		for _, n := range named.FindAllStringSubmatch(line, -1) {
			if !tests[n[1]+"."+n[2]] {
				t.Errorf("%s: there is no test %s", id[1], n[0])
			}
		}
	}
	if cases < 60 {
		t.Errorf("%d cases were read", cases)
	}
}

// testsOf finds the tests of the tree, as folder.Name.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	out := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.':
			return filepath.SkipDir // what is fetched, and git's own
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		for _, f := range function.FindAllStringSubmatch(string(text), -1) {
			out[filepath.Base(filepath.Dir(name))+"."+f[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
