package e2e

import (
	"regexp"
	"testing"
)

// TestMovedBackByResolveReadsAgainWithoutAStop: what the group had committed past is in the views too, so that a table with views needs no recomputing,
// and nothing is written again (field case J4).
func TestMovedBackByResolveReadsAgainWithoutAStop(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	truth := w.produce(6000, 9).all()
	w.mustDrain(settings{member: "-", rows: 700})
	w.verify(truth)
	before := w.inserts()
	args := []string{"offsets", "resolve", "-c", w.config(settings{}), "--topic", w.topic, "--partition", "0", "--to", "10"}
	w.awaitNoMember(args)
	if code, stdout, stderr := w.command(append(args, "--apply")...); code != 0 {
		t.Fatalf("offsets resolve ended with %d:\n%s%s", code, stdout, stderr)
	}
	got := w.mustDrain(settings{member: "-", rows: 500})
	if !regexp.MustCompile(`^consumed 5990 = .* conflicts 0 \+ dead letters 0`).MatchString(got) {
		t.Errorf("the second drain said %q", got)
	}
	w.verify(truth)
	if after := w.inserts(); after != before {
		t.Errorf("the second drain sent inserts: %s after %s", after, before)
	}
}
