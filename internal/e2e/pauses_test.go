package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// A pause of fetching belongs to one assignment. The client keeps it: a
// partition that was taken away in mid-pause and came back was never read again (field case C5).
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

// awaitSharing is awaitShared of a sink that joins another, which is quick: records go on coming until both work on them.
func (w *world) awaitSharing(p *sink, f *feed, allowed int) {
	w.t.Helper()
	w.awaitMoving(p, fmt.Sprintf("%s has committed something", p.name), func() (int64, bool) {
		allowed += 40
		f.allow(allowed)
		p.trace.mu.Lock()
		defer p.trace.mu.Unlock()
		return int64(p.trace.total), p.trace.counts[pipeline.StepCommitted] > 0
	})
}

// A range that an intent lists is cut exactly, though it was made when a
// partition's share of the memory was larger than all of it is now: what an OOM
// kill left, by smaller settings (field case K8).
func TestAnIntentLargerThanTheMemoryIsCompleted(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	const n = 3500
	noise := rand.New(rand.NewPCG(4, 4)) // what is compressed well comes in one fetch, before any pause
	values := make([][]byte, n)
	for i := range values {
		var b strings.Builder
		for b.Len() < 2000 {
			fmt.Fprintf(&b, "%016x", noise.Uint64())
		}
		values[i] = fmt.Appendf(nil, `{"settle_ms":%d,"id":"%d-%s","rev":1,"tenant":"t","amount":0.5,"qty":1,"currency":"EUR","create_time":%d}`, settled, i, b.String(), settled)
	}
	w.send(values...)
	w.killUnacknowledged() // in the midst of a batch of 1000
	w.mustDrain(settings{memory: "256KiB", bytes: "64KiB"})
	w.holds(n, n)
}
