package wiring

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Eight partitions that stopped in one restart of ClickHouse were eight commands, to be picked out of the log one by one.
func TestPartitionsThatStopForOneCauseAreOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		s := newStops(slog.New(slog.NewTextHandler(log, nil)))
		cure := func(p int32, more string) string {
			return fmt.Sprintf("stop the sink, then run: sink offsets resolve -c CONFIG --topic t --partition %d %s --apply", p, more)
		}
		session := &session{}
		session.beside(t.Context(), s.watch)
		defer session.close()
		later := func() { time.Sleep(stopsQuiet + time.Second); synctest.Wait() }
		s.set("t", 3, cure(3, "--views-recomputed"))
		s.set("u", 4, cure(4, "--views-recomputed")) // another topic
		s.set("t", 5, cure(5, "--drop-intent"))      // another way on
		s.set("t", 6, cure(6, "--to 17"))            // an offset is one partition's
		s.set("t", 7, cure(7, "--to 17"))
		s.set("t", 8, cure(8, "--views-recomputed --range 1-2")) // and so is a range
		s.set("t", 9, cure(9, "--views-recomputed --range 1-2"))
		s.set("t", 11, "mend the table")
		s.set("t", 12, "mend the table")
		later()
		if all := log.with(""); len(all) != 0 {
			t.Fatalf("nothing is common to two of them: %q", all)
		}
		s.set("t", 10, cure(10, "--views-recomputed"))
		s.set("t", 0, cure(0, "--views-recomputed"))
		later()
		later()
		all := log.with("several partitions stopped for the same cause")
		if len(all) != 1 || !strings.Contains(all[0], "sink offsets resolve -c CONFIG --topic t --partition 0,3,10 --views-recomputed --apply") || strings.Contains(all[0], "\x00") {
			t.Fatalf("told %q, want the command for 0, 3 and 10 once", all)
		}
		s.gone("t", 0)
		later()
		s.set("t", 1, cure(1, "--views-recomputed"))
		later()
		if all := log.with("--partition 1,3,10 "); len(all) != 1 {
			t.Errorf("another one stopped, one goes on: %q", log.with(""))
		}
	})
}
