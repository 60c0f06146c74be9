//go:build chaos

package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const wholeUpgrade = true

// newerStore keeps its keys in format 2.
var newerStore = &release{name: "v-newer-store", edits: []edit{
	{"pkg/dedup/lua/guard.lua", "r[1] ~= '1'", "r[1] ~= '2'"},
	{"pkg/dedup/lua/raise.lua", "'v', 1,", "'v', 2,"},
	{"pkg/dedup/marker.go", "storeFormat = 1", "storeFormat = 2"},
}}

// TestAStoreOfAnotherFormatIsRefusedByEitherBuild: neither build touches the other's keys, both say how to go on, and the way that they name doubles nothing.
func TestAStoreOfAnotherFormatIsRefusedByEitherBuild(t *testing.T) {
	newer := newerStore.of(t)
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	f := w.produce(9000, 34)
	f.allow(3000)
	older := w.start(settings{rows: 400, member: "older"})
	w.awaitInserted(older, 500)
	w.refused(settings{member: "newer", binary: newer}, "in format 1", "this build writes format 2", "osink:{")
	f.allow(6000)
	w.awaitAdvance(older, false)
	older.stop() // as the refusal says: an insert under way whose claims are deleted stops its partition where there are views

	said := w.refused(settings{member: "newer", binary: newer}, "in format 1", "delete the keys")
	w.forgetKeys(said)
	w.mustDrain(settings{member: "newer", binary: newer})
	w.refused(settings{member: "older"}, "in format 2", "this build writes format 1", "run a build as new", "osink:{")
	code, stdout, stderr := w.command("check", "-c", w.config(settings{}))
	if code != 3 || !strings.Contains(stdout+stderr, "in format 2") {
		t.Errorf("check ended with %d:\n%s%s", code, stdout, stderr)
	}
	truth := f.all()
	w.mustDrain(settings{member: "newer", binary: newer})
	w.verify(truth)
}

// TestRollingToNewerIntentsAndBackStopsOrSettles: two builds whose intents differ in version, side by side under load. The older one may stop partitions, and
// whatever it stopped the newer one settles. A rollback behind a clean stop is exact.
func TestRollingToNewerIntentsAndBackStopsOrSettles(t *testing.T) {
	newer := newerIntents.of(t)
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true, slow: 20 * time.Millisecond})
	w.roll([2]string{"", newer}, 5, 80_000, true)
	w.mustDrain(settings{}) // everything is settled: the older one finds nothing that it can't read
}

// TestAStoreChangedOverUnderARunningSinkStopsItsClaims: the keys were deleted and a newer build wrote its own while an older one still ran. It waits and says
// what it met; nothing doubles.
func TestAStoreChangedOverUnderARunningSinkStopsItsClaims(t *testing.T) {
	newer := newerStore.of(t)
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	f := w.produce(9000, 38)
	f.allow(3000)
	older := w.start(settings{rows: 200, member: "older"})
	w.awaitInserted(older, 500)
	said := w.refused(settings{member: "newer", binary: newer}, "in format 1")
	w.forgetKeys(said)
	next := w.start(settings{rows: 200, member: "newer", binary: newer})
	f.allow(6000)
	for end := time.Now().Add(stalls); !strings.Contains(older.said(400)+next.said(400), "this build writes format"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("neither of the two builds says that the store is the other's")
		}
	}
	w.nothingDoubled()
	older.kill()
	if !next.running() { // the older one was first to write a marker
		w.forgetKeys(next.said(400))
		next = w.start(settings{rows: 200, member: "newer", binary: newer})
	}
	truth := f.all()
	w.awaitSettled(next)
	next.stop()
	w.verify(truth)
}

// TestUpdatesUnderKillsAtEveryStep: each life is of the other build, and killed at another step.
func TestUpdatesUnderKillsAtEveryStep(t *testing.T) {
	const kills, records = 12, 90_000
	other := sameFormats.of(t)
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true, slow: slowView})
	f := w.produce(records, 39)
	rng := rand.New(rand.NewPCG(39, 1))
	samples := w.watch(f)
	defer samples()
	for n := range kills {
		f.allow(records / (kills + 1) * (n + 1))
		life := bounds[n%len(bounds)]
		if n%2 == 1 {
			life.binary = other
		}
		w.killOnce(rng, aims[n%len(aims)], life)
	}
	truth := f.all()
	w.mustDrain(settings{rows: 4000})
	samples()
	w.verify(truth)
}
