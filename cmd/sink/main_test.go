package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/embedded"
)

func TestMain(m *testing.M) {
	embedded.MaybeRunChild()
	os.Exit(m.Run())
}

// sink runs the program in this process.
func sink(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	err := run(t.Context(), args, func(string) (string, bool) { return "", false }, strings.NewReader(""), &out, &errs)
	return exitCode(err), out.String(), errs.String()
}

const goodFile = `
kafka: {brokers: [localhost:9092], group: g}
clickhouse: {addresses: [localhost:9000]}
redis: {addresses: [localhost:6379]}
routes: [{topics: [t], table: e, key: [id], dead_letter: d}]
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sink.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Scripts branch on these codes, and people read one sentence with the way on.
func TestWrongUsageIsToldInOneSentenceAndExitsWith2(t *testing.T) {
	good := file(t, goodFile)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "sink: no command"},
		{[]string{"chekc"}, `unknown command "chekc"; did you mean "check"?`},
		{[]string{"help", "verson"}, `unknown command "verson"; did you mean "version"?`},
		{[]string{"--vresion"}, "unknown option before the command"},
		{[]string{"check", "--confg", "x"}, `check: unknown option --confg; did you mean "config"?; ` + "`sink check --help` tells more"},
		{[]string{"check", "--config-only", "-c", good, "more"}, `unexpected argument "more"`},
		{[]string{"check", "-c"}, "flag needs an argument: -c"},
		{[]string{"version", "--json=maybe"}, "invalid boolean value"},
		{[]string{"dev", "--kafka", "many"}, "invalid value"},
		{[]string{"dev", "--kafka", "70000"}, "--kafka 70000 is no port"},
		{[]string{"check", "--config-only", "-c", "/nope.yaml"}, "/nope.yaml: does not exist"},
	} {
		code, stdout, stderr := sink(t, c.args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("sink %v: %d, stdout %q, stderr %q; want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

func TestHelpIsAResultAndNamesEveryCommandWithExamples(t *testing.T) {
	code, overview, stderr := sink(t, "help")
	if code != exitDone || stderr != "" {
		t.Fatalf("%d %q", code, stderr)
	}
	for _, c := range commands() {
		if !strings.Contains(overview, "\n  "+c.name) {
			t.Errorf("%s is not in the overview", c.name)
		}
		for _, args := range [][]string{{c.name, "--help"}, {c.name, "-h"}, {"help", c.name}} {
			code, help, stderr := sink(t, args...)
			if code != exitDone || stderr != "" || !strings.HasPrefix(help, "sink "+c.name+": ") || !strings.Contains(help, "\nExamples:\n  sink "+c.name) {
				t.Errorf("sink %v: %d %q %q", args, code, help, stderr)
			}
		}
		if len(c.examples) == 0 || c.summary == "" || c.run == nil {
			t.Errorf("%s is half a command", c.name)
		}
	}
}

func TestOptionsMayStandAnywhereAndTwoDashesEndThem(t *testing.T) {
	for _, c := range []struct {
		args   []string
		name   string
		others []string
	}{
		{[]string{"a", "--name", "n", "b"}, "n", []string{"a", "b"}},
		{[]string{"-n=n", "a"}, "n", []string{"a"}},
		{[]string{"a", "--", "--name", "b"}, "", []string{"a", "--name", "b"}},
		{[]string{"-"}, "", []string{"-"}},
		{nil, "", nil},
	} {
		env := &environment{command: &command{name: "x"}}
		f, name := env.options(), ""
		f.text(&name, "n,name", "NAME", "")
		others, err := f.parse(c.args, 9)
		if err != nil || name != c.name || !slices.Equal(others, c.others) {
			t.Errorf("%v: name %q, others %v, %v", c.args, name, others, err)
		}
	}
}

func TestCheckTellsEachProblemOnceAndAGoodFileOnStdout(t *testing.T) {
	good, bad := file(t, goodFile), file(t, strings.Replace(goodFile, "table: e", "tabel: e", 1)+"batch: {max_rows: x}\n")
	if code, stdout, stderr := sink(t, "check", "--config-only", "-c", good); code != exitDone || stdout != good+": good (1 route)\n" || stderr != "" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	code, stdout, stderr := sink(t, "check", "--config-only", "-c", bad)
	want := bad + `:5: routes[0].tabel: unknown key; did you mean "table"?` + "\n" + bad + `:6: batch.max_rows: "x" is no whole number` + "\n"
	if code != exitUsage || stdout != "" || stderr != want {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	code, stdout, _ = sink(t, "check", "--config-only", "--json", "-c", bad)
	var result struct {
		Fit      bool
		Problems []config.Problem
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != exitUsage || result.Fit || len(result.Problems) != 2 || result.Problems[1].Line != 6 {
		t.Errorf("%d %q %v", code, stdout, err)
	}
	if code, stdout, _ = sink(t, "check", "--config-only", "--json", "-c", good); code != exitDone || !strings.Contains(stdout, `"fit":true,"problems":[]`) {
		t.Errorf("%d %q", code, stdout)
	}
}

func TestVersionComesFromTheBuild(t *testing.T) {
	code, stdout, _ := sink(t, "version")
	if code != exitDone || !strings.HasPrefix(stdout, "oncesink ") || !strings.Contains(stdout, "go1.") {
		t.Errorf("%d %q", code, stdout)
	}
	var b build
	if _, stdout, _ = sink(t, "--version"); !strings.HasPrefix(stdout, "oncesink ") {
		t.Errorf("%q", stdout)
	}
	if _, stdout, _ = sink(t, "version", "--json"); json.Unmarshal([]byte(stdout), &b) != nil || b.Go == "" {
		t.Errorf("%q", stdout)
	}
}

// "(devel)" in a metric or a dead letter tells nobody which build it was.
func TestTheLinkersVersionIsToldEverywhere(t *testing.T) {
	for _, path := range []string{"../../Makefile", "../../Dockerfile"} {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "-X main.version=") {
			t.Errorf("%s doesn't set the version: %v", path, err)
		}
	}
	version = "v1.2.3-4-gabcdef0"
	defer func() { version = "" }()
	if _, stdout, _ := sink(t, "version"); !strings.HasPrefix(stdout, "oncesink v1.2.3-4-gabcdef0") {
		t.Errorf("%q", stdout)
	}
	w := httptest.NewRecorder()
	newStatus(config.Default()).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), `sink_build_info{version="v1.2.3-4-gabcdef0"} 1`) {
		t.Error("sink_build_info tells another")
	}
}

func TestExitCodesFollowTheTypeOfTheErrorHoweverItIsWrapped(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("x"), exitFailed},
		{context.Canceled, exitFailed},
		{fmt.Errorf("a: %w", usagef("x")), exitUsage},
		{errors.Join(errors.New("x"), &config.Invalid{}), exitUsage},
		{fmt.Errorf("a: %w", no("the target is unfit")), exitNo},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestAnErrorIsALogLineWhereLogsAreReadByMachines(t *testing.T) {
	var out strings.Builder
	env := &environment{stderr: &out}
	env.report(no("")) // the result is on stdout already
	env.report(errors.New("plain"))
	env.startLog(config.Log{Level: "error", Format: "json"}).Info("too quiet to be seen")
	env.report(errors.New("machine"))
	lines := strings.Split(out.String(), "\n")
	var line struct{ Level, Msg string }
	if len(lines) != 3 || lines[0] != "sink: plain" || json.Unmarshal([]byte(lines[1]), &line) != nil || line.Level != "ERROR" || line.Msg != "machine" {
		t.Errorf("%q", out.String())
	}
}

func TestAScriptIsCutOnlyWhereAStatementEnds(t *testing.T) {
	for _, c := range []struct {
		script string
		want   []string
	}{
		{"", nil},
		{" ; -- only this\n;/* and */ ", nil},
		{"SELECT 1", []string{"SELECT 1"}},
		{"SELECT 1; SELECT 2;\n", []string{"SELECT 1", "SELECT 2"}},
		{`SELECT 'a;b', "c;d", ` + "`e;f`" + `; SELECT 2`, []string{`SELECT 'a;b', "c;d", ` + "`e;f`", "SELECT 2"}},
		{`SELECT 'it\';s', 'it'';s'; SELECT 2`, []string{`SELECT 'it\';s', 'it'';s'`, "SELECT 2"}},
		{"SELECT 1 -- a;b\n; SELECT /* c;d */ 2", []string{"SELECT 1 -- a;b", "SELECT /* c;d */ 2"}},
		{"-- what it does\nSELECT 1", []string{"-- what it does\nSELECT 1"}},
		{"SELECT $x$a;b$x$, $$c;d$$; SELECT 2", []string{"SELECT $x$a;b$x$, $$c;d$$", "SELECT 2"}},
		{"SELECT $1; SELECT '$'", []string{"SELECT $1", "SELECT '$'"}},
		{"SELECT 'no end; SELECT 2", []string{"SELECT 'no end; SELECT 2"}},
	} {
		if got := splitStatements(c.script); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q", c.script, got, c.want)
		}
	}
}
