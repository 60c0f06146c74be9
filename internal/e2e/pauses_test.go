package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// A pause of fetching belongs to one assignment. The client keeps it: a
// partition that was taken away in mid-pause and came back was never read again.
func TestAPartitionThatComesBackIsReadAgain(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 4, slow: 50 * time.Millisecond})
	f := w.produce(40_000, 9)
	truth := f.all() // more than the first sink may buffer: it pauses at once
	first := w.start(settings{rows: 200, member: "-", memory: "2MiB", bytes: "512KiB"})
	w.awaitInserted(first, 1000)
	second := w.start(settings{rows: 200, member: "-"})
	w.awaitShared(second)
	second.kill()
	w.awaitSettled(first)
	first.stop()
	w.verify(truth)
}

// awaitShared waits until a sink that joined works on some of the partitions.
func (w *world) awaitShared(p *sink) {
	w.t.Helper()
	w.awaitMoving(p, fmt.Sprintf("%s has committed something", p.name), func() (int64, bool) {
		p.trace.mu.Lock()
		defer p.trace.mu.Unlock()
		return int64(p.trace.total), p.trace.counts[pipeline.StepCommitted] > 0
	})
}

// A range that an intent lists is cut exactly, though it was made when a
// partition's share of the memory was larger than all of it is now.
func TestAnIntentLargerThanTheMemoryIsCompleted(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	truth := w.produce(6000, 4).all()
	w.killUnacknowledged()
	w.mustDrain(settings{rows: 100, memory: "8KiB", bytes: "2KiB"})
	w.verify(truth)
}
