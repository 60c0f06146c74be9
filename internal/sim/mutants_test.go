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
// `go test -overlay`, and expects that a seed breaks an invariant.
// MUTANT=prefix runs some only.
func TestEveryMutantIsCaught(t *testing.T) {
	ms, err := Mutations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		if !strings.HasPrefix(m.Name, os.Getenv("MUTANT")) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			replace := map[string]string{}
			dir := t.TempDir()
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
			overlay, err := json.Marshal(map[string]any{"Replace": replace})
			if err != nil {
				t.Fatal(err)
			}
			list := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(list, overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			pkg, test := ".", "TestMutantIsCaught"
			if m.By != "" {
				pkg, test, _ = strings.Cut(m.By, " ")
				pkg = filepath.Join(root, pkg)
			}
			cmd := exec.CommandContext(ctx, "go", "test", "-overlay", list, "-count=1", "-run", "^"+test+"$", pkg)
			cmd.Env = append(os.Environ(), "FOCUS="+m.Focus, fmt.Sprintf("SEEDS=%d", m.Seeds))
			start := time.Now()
			out, err := cmd.CombinedOutput()
			_, caught, ok := strings.Cut(string(out), "caught by ")
			if m.By != "" {
				caught, ok = m.By, strings.Contains(string(out), "--- FAIL: "+test)
			}
			if err == nil || !ok {
				t.Fatalf("%s: not caught in %d seeds: %s\n%s", m.Name, m.Seeds, m.About, out)
			}
			caught, _, _ = strings.Cut(caught, "\n")
			t.Logf("%-28s %s [%.0fs]", m.Name, caught, time.Since(start).Seconds())
		})
	}
}
