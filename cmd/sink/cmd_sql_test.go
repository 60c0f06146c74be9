package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The steps of the example's own header, up to where records come in.
func TestTheExamplesTablesAreMadeByTheCommandThatItsHeaderNames(t *testing.T) {
	at, _ := startDev(t)
	c := file(t, strings.NewReplacer("localhost:9092", at["kafka"], "localhost:9000", at["clickhouse"], "localhost:6379", at["redis"]).Replace(goodFile))
	expect := func(code int, stdout, stderr string, args ...string) {
		t.Helper()
		got, out, errs := sink(t, append([]string{"sql", "-c", c}, args...)...)
		if got != code || out != stdout || !strings.Contains(errs, stderr) || (stderr == "") != (errs == "") {
			t.Errorf("sink sql %v: %d %q %q, want %d %q %q", args, got, out, errs, code, stdout, stderr)
		}
	}
	script := filepath.Join("..", "..", "examples", "settlements.sql")
	expect(exitDone, "", "", "--file", script)
	expect(exitDone, "", "", "--file", script) // once more is no error
	expect(exitDone, "events\nreport\nreport_mv\n", "", "SELECT name FROM system.tables WHERE database = 'default' ORDER BY name")
	row := "INSERT INTO events SELECT 1767225600000, 'a', 1, 't1', 12.34, 3, 'EUR', '2026-01-01 00:00:01'"
	expect(exitDone, "", "", row+"; "+strings.Replace(row, "'a', 1", "'a', 2", 1)+";")
	expect(exitDone, "2\t2\t24.68\n", "", "SELECT count(), uniqExact(settle_ms, id, rev), sum(amount) FROM events")
	expect(exitDone, `{"tenant":"t1","day":"2026-01-01","events":2}`+"\n", "", "--json",
		"SELECT tenant, day, toUInt8(sum(events)) AS events FROM report GROUP BY tenant, day")
	expect(exitFailed, "1\n", "statement 2 of 3", "SELECT 1; SELECT nonsense; SELECT 3")
	expect(exitFailed, "", "nonsense", "SELECT * FROM nonsense")
	expect(exitUsage, "", "there is no statement", " ; -- nothing")
	expect(exitUsage, "", "there is no statement") // stdin is empty
	expect(exitUsage, "", "one of them", "SELECT 1", "--file", script)
	expect(exitUsage, "", "does not exist", "--file", filepath.Join(t.TempDir(), "nope.sql"))
}

func TestSQLOnAServerThatIsNotThereSaysSoAndEnds(t *testing.T) {
	c := file(t, strings.ReplaceAll(goodFile, "localhost:9000", "127.0.0.1:1"))
	if code, stdout, stderr := sink(t, "sql", "-c", c, "SELECT 1"); code != exitFailed || stdout != "" || !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}
