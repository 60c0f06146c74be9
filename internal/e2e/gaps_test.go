package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A group whose offsets expired is no new one. Starting at the oldest record
// would pass over what was deleted meanwhile without a word (field cases C9,
// C10).
func TestOffsetsThatExpiredStopThePartitionAndNameTheGap(t *testing.T) {
	for _, c := range []struct {
		name    string
		deleted int64    // below; 0: nothing
		named   []string // what the stop says
		cure    int      // which of the commands that it names is taken
		account string   // of the drain behind the cure
	}{
		{"and records were deleted that were never read", 2300, []string{"reached 2000", "[2000..2299]", "starts at 2300"}, 0, "consumed 200 = inserted 200 + "},
		{"and the log still has what was read", 0, []string{"reached 2000", "starts at 0"}, 0, "consumed 500 = inserted 500 + "},
		{"and all is to be read again", 0, nil, 1, "consumed 2500 = inserted 2500 + "},
		{"and only what was read was deleted", 1500, []string{"reached 2000", "starts at 1500"}, 0, "consumed 500 = inserted 500 + "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sharedStack(t), design{partitions: 1})
			w.send(numbered(0, 2000)...)
			w.mustDrain(settings{member: "-"})
			w.send(numbered(2000, 500)...)
			if c.deleted > 0 {
				w.deleteRecords(c.deleted)
			}
			w.forget()
			code, said, stderr := w.drain(settings{member: "-"})
			stop := stopLine(stderr)
			if code != 3 || stop == "" {
				t.Fatalf("the drain ended with %d and said %q, want 3 and a stop:\n%s", code, said, stderr)
			}
			w.holds(2000, 2000)
			for _, want := range c.named {
				if !strings.Contains(stop, want) {
					t.Errorf("the stop says %q, which doesn't name %q", stop, want)
				}
			}
			w.cure(stop, c.cure)
			if got := w.mustDrain(settings{member: "-"}); !strings.HasPrefix(got, c.account) {
				t.Errorf("the drain behind the cure said %q, want %q", got, c.account)
			}
			rows := 2500 - max(c.deleted-2000, 0)
			w.holds(rows, rows)
		})
	}
}

// cure runs one of the commands that a stop names, word by word.
func (w *world) cure(stop string, which int) {
	w.t.Helper()
	commands := regexp.MustCompile(`sink (offsets resolve [^"]*?--apply)`).FindAllStringSubmatch(stop, -1)
	if which >= len(commands) {
		w.t.Fatalf("the stop names %d commands, want at least %d: %s", len(commands), which+1, stop)
	}
	args := strings.Fields(strings.ReplaceAll(commands[which][1], "CONFIG", w.config(settings{})))
	if code, stdout, stderr := w.command(args...); code != 0 {
		w.t.Fatalf("%q ended with %d:\n%s%s", args, code, stdout, stderr)
	}
}

// A first start that ended before anything was settled is none that was here
// before: it must not ask.
func TestASecondStartBehindAFirstThatReadNothingAsksNothing(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1})
	w.accounted(w.mustDrain(settings{member: "-"}), 0, 0, 0, 0, 0)
	w.forget()
	w.send(numbered(0, 10)...)
	w.accounted(w.mustDrain(settings{member: "-"}), 10, 10, 0, 0, 0)
}

// Kafka answers each fetch of a partition that stopped with the same error. The
// others go on. What is missing is named (field cases C9, J5).
func TestAPartitionBehindAGapHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 2})
	w.send(numbered(0, 100)...)
	w.mustDrain(settings{member: "-"})
	w.send(numbered(100, 50)...)
	w.deleteRecords(120)
	p := w.start(settings{member: "-"})
	for i := range 40 {
		r := &kgo.Record{Topic: w.topic, Partition: 1, Value: row{n: 1000 + i}.json()}
		if err := w.kafka.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w.awaitMoving(p, "the other partition is committed", func() (int64, bool) {
			o := w.offsets()
			return o[1].committed, o[1].committed == int64(i+1)
		})
	}
	stop := stopLine(p.said(1000))
	if !strings.Contains(stop, "[100..119]") || !strings.Contains(stop, "--partition 0 --to 120 --apply") {
		t.Errorf("the stop says %q, which names no gap or no cure", stop)
	}
	p.kill()
	w.holds(140, 140)
}
