package main

import (
	"strings"
	"testing"

	"github.com/oncesink/oncesink/internal/status"
)

func TestHealthAnswersForAContainerWithoutAShell(t *testing.T) {
	s := status.New(status.Options{})
	server, err := s.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := sink(t, append([]string{"health"}, args...)...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Errorf("sink health %v: %d %q %q, want %d %q", args, got, stdout, stderr, code, want)
		}
	}
	configured := file(t, goodFile+"http: {listen: '"+server.Addr()+"'}\n")
	silent := file(t, goodFile+"http: {listen: ''}\n")
	expect(exitDone, "alive", "-c", configured)
	expect(exitNo, "no partition is assigned yet", "-c", configured, "--ready")
	s.Joined()
	expect(exitDone, "ready", "--url", "http://"+server.Addr()+"/", "--ready")
	expect(exitFailed, "is this a sink?", "--url", "http://"+server.Addr()+"/elsewhere")
	expect(exitUsage, "http.listen is empty", "-c", silent)
	expect(exitUsage, "--url", "--url", "http://a b")
	if err := server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(exitFailed, "connection refused", "-c", configured)
}

func TestHealthAsksThisMachineWhateverTheSinkListensOn(t *testing.T) {
	for listen, want := range map[string]string{
		":8080": "http://localhost:8080", "0.0.0.0:1": "http://localhost:1", "'[::]:2'": "http://localhost:2",
		"127.0.0.1:3": "http://127.0.0.1:3", "'[::1]:4'": "http://[::1]:4", "host:5": "http://host:5",
	} {
		env := &environment{command: healthCommand, lookup: func(string) (string, bool) { return "", false }}
		f := env.options()
		load := f.config()
		if _, err := f.parse([]string{"-c", file(t, goodFile+"http: {listen: "+listen+"}\n")}, 0); err != nil {
			t.Fatal(err)
		}
		c, err := load()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ownURL(c); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", listen, got, err, want)
		}
	}
}
