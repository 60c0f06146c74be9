package wiring

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// Each change of a partition is told once, in words that are true of it: a gated one does not simply go on.
func TestAChangeOfAPartitionIsToldOnceAndAsWhatItIs(t *testing.T) {
	log := &lines{}
	to := slog.New(slog.NewTextHandler(log, nil))
	s := &states{last: map[string]string{}, log: to, first: &atomic.Bool{}, stops: newStops(to)}
	for range 2 {
		s.tell("t", 0, pipeline.Running, "", "") // as it begins: nothing to tell
	}
	for _, c := range []struct {
		state pipeline.State
		want  string
	}{
		{pipeline.Gated, "level=INFO msg=\"partition inserts on, its offset waits for another partition's rows\""},
		{pipeline.Running, "level=INFO msg=\"partition goes on\""},
		{pipeline.Waiting, "level=WARN msg=\"partition waits\""},
		{pipeline.Stopped, "level=ERROR msg=\"partition stopped: nothing is guessed\""},
	} {
		before := len(log.with(""))
		for range 3 {
			s.tell("t", 0, c.state, "why", "cure")
		}
		if all := log.with(""); len(all) != before+1 || !strings.Contains(all[before], c.want) {
			t.Errorf("%s: told %q, want %q once", c.state, all[before:], c.want)
		}
	}
	s.first.Store(true)
	s.tell("t", 1, pipeline.Waiting, "claim 1 key: the dedup store is in quarantine since …", "")
	s.tell("t", 2, pipeline.Waiting, "redis r:6379: connection refused", "")
	if len(log.with("level=INFO msg=\"partition waits\" topic=t partition=1")) != 1 || len(log.with("level=WARN msg=\"partition waits\" topic=t partition=2")) != 1 {
		t.Errorf("only the wait of a first start is no alarm:\n%s", log)
	}
}
