package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A series that is made at 0 under one name and counted under another looks like a table that gets nothing.
func TestZeroSeriesBearTheNameThatIsCountedUnder(t *testing.T) {
	env := &environment{command: runCommand, lookup: func(string) (string, bool) { return "", false }}
	f := env.options()
	load := f.config()
	if _, err := f.parse([]string{"-c", file(t, goodFile)}, 0); err != nil {
		t.Fatal(err)
	}
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	newStatus(cfg).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if text := w.Body.String(); !strings.Contains(text, `sink_rows_inserted_total{table="default.e",topic="t"} 0`) || strings.Contains(text, `table="e"`) {
		t.Errorf("not under default.e:\n%s", text)
	}
}
