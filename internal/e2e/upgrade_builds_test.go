package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// release is a build of the sink that is not the present tree's: some files of it are others, and so is its version.
type release struct {
	name  string
	edits []edit

	once sync.Once
	path string
	err  string
}

// edit replaces a text, which has to be there, in a file of the tree.
type edit struct{ file, old, new string }

var (
	// sameFormats differs in its version alone.
	sameFormats = &release{name: "v-other"}

	// newerIntents writes intents of version 2, and reads those of version 1 as every next version has to.
	newerIntents = &release{name: "v-newer-intents", edits: []edit{
		{"pkg/offsets/codec.go", "version = 1\n\tprefix  = \"os1.\"", "version = 2\n\tprefix  = \"os2.\""},
		{"pkg/offsets/codec.go", "func Decode(metadata string) (*Intent, error) {\n", `func Decode(metadata string) (*Intent, error) {
	if body, before := strings.CutPrefix(metadata, "os1."); before {
		raw, err := base64.RawURLEncoding.DecodeString(body)
		if err != nil || len(raw) < 4 {
			return nil, &CorruptError{Reason: "of version 1"}
		}
		raw, sum := raw[:len(raw)-4], binary.BigEndian.Uint32(raw[len(raw)-4:])
		if crc32.Update(crc32.Checksum([]byte("os1."), castagnoli), castagnoli, raw) != sum {
			return nil, &CorruptError{Reason: "of version 1, the checksum is wrong"}
		}
		r := reader{b: raw}
		in := r.intent()
		if r.bad || len(r.b) > 0 {
			return nil, &CorruptError{Reason: "of version 1, not the content"}
		}
		return in, nil
	}
`},
	}}
)

// of builds the release once a test binary.
func (r *release) of(t testing.TB) string {
	t.Helper()
	beside := filepath.Dir(sinkBinary(t)) // removed at the end
	r.once.Do(func() { r.build(beside) })
	if r.err != "" {
		t.Fatalf("build the release %s: %s", r.name, r.err)
	}
	return r.path
}

func (r *release) build(dir string) {
	root, err := filepath.Abs("../..")
	if err != nil {
		r.err = err.Error()
		return
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for _, e := range r.edits {
		file := filepath.Join(root, e.file)
		other := overlay.Replace[file]
		if other == "" {
			other = filepath.Join(dir, r.name+"-"+filepath.Base(file))
		}
		from := file
		if overlay.Replace[file] != "" {
			from = other
		}
		text, err := os.ReadFile(from)
		if err != nil {
			r.err = err.Error()
			return
		}
		if strings.Count(string(text), e.old) != 1 {
			r.err = e.file + " has not exactly one " + e.old
			return
		}
		if err := os.WriteFile(other, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			r.err = err.Error()
			return
		}
		overlay.Replace[file] = other
	}
	list := filepath.Join(dir, r.name+".json")
	text, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(list, text, 0o600)
	}
	if err != nil {
		r.err = err.Error()
		return
	}
	r.path = filepath.Join(dir, "sink-"+r.name)
	said, err := exec.Command("go", "build", "-p=1", "-overlay", list, "-ldflags", "-X main.version="+r.name, "-o", r.path, "../../cmd/sink").CombinedOutput()
	if err != nil {
		r.err = err.Error() + ": " + string(said)
	}
}
