package e2e

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestRollingUpdateAndRollbackLoseAndDoubleNothing: two builds of one group, each process replaced in turn by one of the other build, by SIGTERM and by
// kill -9, while records come.
func TestRollingUpdateAndRollbackLoseAndDoubleNothing(t *testing.T) {
	rounds, records := 1, 9000
	if wholeUpgrade {
		rounds, records = 9, 120_000
	}
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true})
	w.roll([2]string{"", sameFormats.of(t)}, rounds, records, false)
}

// roll replaces the two sinks of a group in turn; every round, of an odd number, changes the build. It ends with the second build in both seats.
func (w *world) roll(builds [2]string, rounds, records int, mayStop bool) {
	w.t.Helper()
	f := w.produce(records, 31)
	samples := w.watch(f)
	defer samples()
	seat := func(n, build int) settings {
		return settings{rows: 300 + 200*n, member: "seat-" + string(rune('a'+n)), binary: builds[build]}
	}
	sinks := [2]*sink{w.start(seat(0, 0)), w.start(seat(1, 0))}
	steps, done := 2*rounds, 0
	for round := range rounds {
		for n := range sinks {
			done++
			f.allow(records * done / steps)
			w.awaitAdvance(sinks[1-n], mayStop)
			if (round+n)%2 == 0 {
				sinks[n].kill()
			} else {
				sinks[n].stop0or3(mayStop)
			}
			sinks[n] = w.start(seat(n, (round+1)%2))
		}
	}
	truth := f.all()
	if mayStop { // of the first build no one is left: what it would not touch is taken over
		sinks[0].stop0or3(true)
		sinks[0] = w.start(seat(0, 1))
	}
	w.awaitSettled(sinks[0])
	sinks[0].stop()
	sinks[1].stop0or3(mayStop)
	w.t.Logf("%d replacements, %d samples", steps, samples())
	w.verify(truth)
}

// stop0or3 stops a sink; 3 tells that a partition of it had stopped by rule.
func (p *sink) stop0or3(mayStop bool) {
	p.t.Helper()
	if !mayStop {
		p.stop()
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.wait(40 * time.Second); code != 0 && code != 3 {
		p.t.Fatalf("%s stopped with %d, want 0 or 3", p.name, code)
	}
}

// awaitAdvance waits until the group has committed something more, or for a while where partitions may be stopped.
func (w *world) awaitAdvance(p *sink, mayStop bool) {
	w.t.Helper()
	began, before := time.Now(), int64(-1)
	w.awaitMoving(p, "the group has committed something", func() (moved int64, done bool) {
		for _, o := range w.offsets() {
			moved += o.committed
		}
		if before < 0 {
			before = moved
		}
		return moved, moved > before || mayStop && time.Since(began) > 5*time.Second
	})
}

// TestAnIntentOfANewerVersionStopsTheOlderSinkOnly: what a newer sink had under way is not touched by an older one, which says so; the newer one settles it,
// and behind it the older one goes on.
func TestAnIntentOfANewerVersionStopsTheOlderSinkOnly(t *testing.T) {
	newer := newerIntents.of(t)
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	f := w.produce(8000, 33)
	f.allow(5000)
	w.killUnacknowledgedIn(settings{rows: 500, binary: newer})
	before := w.offsets()

	code, _, stderr := w.drain(settings{})
	said := stopLine(stderr)
	if code != 3 {
		t.Fatalf("the older sink ended with %d, want 3 for a partition that it must not touch:\n%s", code, stderr)
	}
	for _, want := range []string{"intent of version 2", "this sink knows version 1", "at least as new", "topic=" + w.topic, "stop it with SIGTERM"} {
		if !strings.Contains(said, want) {
			t.Errorf("the older sink stopped with %q, which doesn't say %q", said, want)
		}
	}
	w.nothingDoubled()
	partition := regexp.MustCompile(`partition=(\d)`).FindStringSubmatch(said)
	if p := int32(partition[1][0] - '0'); w.offsets()[p].committed != before[p].committed {
		t.Errorf("partition %d was committed past %d by a sink that can't read its intent", p, before[p].committed)
	}
	config := w.config(settings{})
	if code, stdout, stderr := w.command("offsets", "show", "-c", config); code != 0 || !strings.Contains(stdout, "intent of version 2") {
		t.Errorf("offsets show ended with %d and says nothing of the version:\n%s%s", code, stdout, stderr)
	}
	args := []string{"offsets", "resolve", "-c", config, "--topic", w.topic, "--partition", partition[1]}
	if code, stdout, stderr := w.command(append(args, "--to", "0")...); code == 0 || !strings.Contains(stderr, "version 2") {
		t.Errorf("moving an offset whose intent can't be read ended with %d:\n%s%s", code, stdout, stderr)
	}

	w.mustDrain(settings{binary: newer})
	truth := f.all()
	w.mustDrain(settings{}) // back on the older one
	w.verify(truth)
}

// refused starts a sink that must not work: exit code 3, with these words. It returns what was said.
func (w *world) refused(c settings, words ...string) string {
	w.t.Helper()
	p := w.start(c)
	code := p.wait(time.Minute)
	said := p.said(50)
	if code != 3 {
		w.t.Fatalf("the sink ended with %d, want 3:\n%s", code, said)
	}
	for _, want := range words {
		if !strings.Contains(said, want) {
			w.t.Errorf("the sink was refused without saying %q:\n%s", want, said)
		}
	}
	if n := w.deadLetters(); n != 0 {
		w.t.Errorf("%d records in %s, want none", n, w.letters)
	}
	return said
}

var keysPattern = regexp.MustCompile(`osink:\{[^}]*\}:\*`)

// forgetKeys deletes the keys that a refusal names.
func (w *world) forgetKeys(said string) {
	w.t.Helper()
	pattern := keysPattern.FindString(said)
	if pattern == "" {
		w.t.Fatalf("the refusal names no keys:\n%s", said)
	}
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: w.s.redis})
	defer func() { _ = rdb.Close() }()
	n := 0
	for it := rdb.Scan(ctx, 0, pattern, 1000).Iterator(); it.Next(ctx); n++ {
		if err := rdb.Unlink(ctx, it.Val()).Err(); err != nil {
			w.t.Fatal(err)
		}
	}
	if n == 0 {
		w.t.Fatalf("no key matches %s", pattern)
	}
}
