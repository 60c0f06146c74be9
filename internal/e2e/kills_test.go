package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// aim says at which moment a life is killed. A kill hits every partition wherever it stands; the aim sees to it that none of the moments is rare.
type aim struct {
	at     moment
	step   pipeline.Step // kill when some partition takes it; "": at any moment
	behind time.Duration // at most so long behind the step
	first  bool          // the life's first such step: the other partitions are not so far yet
}

var aims = []aim{
	{at: decoding, step: pipeline.StepClaimed, first: true},
	{at: claimed, step: pipeline.StepClaimed},
	{at: intended, step: pipeline.StepIntent},
	{at: inFlight, step: pipeline.StepInserting, behind: 3 * time.Millisecond},
	{at: inView, step: pipeline.StepInserting, behind: 2 * slowView},
	{at: acked, step: pipeline.StepWritten},
	{at: acked, step: pipeline.StepPublished},
	{},
}

const slowView = 60 * time.Millisecond

// The bounds change from life to life, so that what a killed life sent in one batch would go in others if its successor did not know of it.
var bounds = []settings{
	{rows: 1500, age: 150 * time.Millisecond}, {rows: 300, age: 50 * time.Millisecond}, {rows: 6000, age: 400 * time.Millisecond},
	{rows: 700, age: 100 * time.Millisecond}, {rows: 20_000, age: 250 * time.Millisecond},
}

// A kill at any step of a batch, then a life with other bounds: a claim without its row blocks nothing, an insert without its acknowledgement comes once
// (field cases A4, C1, C22, D1).
func TestKillsAtEveryStepLoseAndDoubleNothing(t *testing.T) {
	kills, records := size(t, "ONCESINK_E2E_KILLS", 15), size(t, "ONCESINK_E2E_RECORDS", 150_000)
	seed := rand.Uint64()
	t.Logf("%d kills, %d records, seed %d", kills, records, seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, sharedStack(t), design{partitions: 8, report: true, slow: slowView})
	f := w.produce(records, seed)
	samples := w.watch(f)
	defer samples()

	var all []crash
	for n := range kills {
		f.allow(records / (kills + 1) * (n + 1))
		all = append(all, w.killOnce(rng, aims[n%len(aims)], bounds[n%len(bounds)]))
		if t.Failed() {
			t.FailNow()
		}
	}
	// A kill takes what it meets. What none has met so far is aimed at again, with the rest of the load.
	h, want := w.judge(all), min(5, max(1, kills/12))
	for n := 0; n < kills && len(h.missed(want)) > 0; n++ {
		f.allow(records - records/(kills+1)*(kills-n)/kills)
		all = append(all, w.killOnce(rng, aimAt(h.missed(want)[0]), bounds[n%len(bounds)]))
		h = w.judge(all)
	}
	truth := f.all()
	w.mustDrain(settings{rows: 4000})
	t.Logf("%d samples during the run", samples())
	w.verify(truth)
	t.Logf("what %d kills hit:\n%s", len(all), h)
	if missed := h.missed(want); len(missed) > 0 {
		t.Errorf("fewer than %d kills hit %q", want, missed)
	}
}

func aimAt(m moment) aim {
	for _, a := range aims {
		if a.at == m {
			return a
		}
	}
	return aim{}
}

// A member that died without a word is missed after its session, and its partitions go on elsewhere (field case K5).
func TestKillWithoutStaticMembershipIsMissedAndReplaced(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true})
	f := w.produce(20_000, 6)
	rng := rand.New(rand.NewPCG(6, 1))
	for n := range 2 {
		f.allow(10_000 * (n + 1))
		w.killOnce(rng, aim{step: pipeline.StepInserting, behind: time.Millisecond}, settings{rows: 500, member: "-"})
	}
	truth := f.all()
	w.mustDrain(settings{member: "-"})
	w.verify(truth)
}

// killPatience bounds a life whose moment doesn't come, for example because everything is settled.
const killPatience = 30 * time.Second

// killOnce lives one life of the sink and ends it with kill -9.
func (w *world) killOnce(rng *rand.Rand, a aim, c settings) crash {
	w.t.Helper()
	p := w.start(c)
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	step := a.step
	if step == "" {
		step = pipeline.StepClaimed
		a.behind = time.Second
	}
	steps := 1 + rng.IntN(8)
	if a.first {
		steps = 1
	}
	err := p.trace.awaitStep(ctx, step, steps)
	if !p.running() {
		w.t.Fatalf("the sink ended by itself with %d (%v):\n%s", p.code, err, p.said(20))
	}
	if a.behind > 0 {
		time.Sleep(time.Duration(rng.Int64N(int64(a.behind))))
	}
	met := crash{at: p.kill(), queued: map[int32]bool{}}
	met.last = p.trace.last()
	for partition, o := range w.offsets() {
		met.queued[partition] = o.end > o.committed
	}
	return met
}

// crash is one kill and where it met each partition.
type crash struct {
	at     time.Time
	last   map[int32]pipeline.Step
	queued map[int32]bool // records were waiting
}
