//go:build mutations

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEveryMutantIsCaught builds the simulation over each mutated source, with
// `go test -overlay`, and expects that a seed breaks an invariant, and that the
// small world does that the mutation names.
// MUTANT=prefix runs some only, PAGE=file writes the table into it.
func TestEveryMutantIsCaught(t *testing.T) {
	ms, err := Mutations()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, m := range ms {
		if !strings.HasPrefix(m.Name, os.Getenv("MUTANT")) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			start := time.Now()
			caught := kill(t, m)
			t.Logf("%-28s %s [%.0fs]", m.Name, caught, time.Since(start).Seconds())
			fmt.Fprintf(&table, "| %s | %s | %s | %.0f |\n", m.Name, m.About, caught, time.Since(start).Seconds())
		})
	}
	text := "| mutation | what is taken out | caught by | seconds |\n|---|---|---|---|\n" + table.String()
	t.Log("\n" + text)
	if page := os.Getenv("PAGE"); page != "" && !t.Failed() {
		text = "# Mutations\n\nWritten by `make mutants`, last at " + time.Now().UTC().Format("2006-01-02 15:04 MST") + `. Each mutation takes one rule of the protocol out of a copy of
the source (internal/sim/mutations/) and must be caught: by a seed that breaks an invariant, by all schedules of a small world too where one is named, or by a named test where another rule
stands before it, so that no schedule can show it. "#" stands for numbers. A checker that can't fail proves nothing.

` + text
		if err := os.WriteFile(filepath.Join(root, page), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// kill tells what catches the mutant.
func kill(t *testing.T, m Mutation) string {
	t.Helper()
	dir := t.TempDir()
	list := overlay(t, m, dir)
	if m.By != "" {
		pkg, test, _ := strings.Cut(m.By, " ")
		out, err := run(t, nil, "go", "test", "-overlay", list, "-count=1", "-run", "^"+test+"$", filepath.Join(root, pkg))
		if err == nil || !strings.Contains(out, "--- FAIL: "+test) {
			t.Fatalf("%s: not caught by %s: %s\n%s", m.Name, m.By, m.About, out)
		}
		return test + " (" + pkg + ")"
	}
	binary := filepath.Join(dir, "sim.test")
	if out, err := run(t, nil, "go", "test", "-overlay", list, "-c", "-o", binary, "."); err != nil {
		t.Fatalf("%s does not build: %v\n%s", m.Name, err, out)
	}
	var by []string
	envs := [][]string{{"FOCUS=" + m.Focus, fmt.Sprintf("SEEDS=%d", m.Seeds)}}
	if m.World != "" {
		envs = append(envs, []string{"FOCUS=" + m.Focus, "WORLD=" + m.World})
	}
	for _, env := range envs {
		out, err := run(t, env, binary, "-test.run", "^TestMutantIsCaught$")
		_, text, ok := strings.Cut(out, "caught by ")
		if err == nil || !ok {
			t.Fatalf("%s: not caught with %q: %s\n%s", m.Name, env, m.About, out)
		}
		text, _, _ = strings.Cut(text, "\n")
		by = append(by, strings.ReplaceAll(text, "|", "/"))
	}
	return strings.Join(by, "; ")
}

// overlay writes the mutated files and the list that puts them in place.
func overlay(t *testing.T, m Mutation, dir string) string {
	t.Helper()
	replace := map[string]string{}
	for path, text := range mutated(t, m) {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d%s", len(replace), filepath.Ext(path)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[abs] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

func run(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
