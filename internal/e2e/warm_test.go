package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestWarmAfterAFlushEndsVerifyMode: the store is emptied, warmed from the table, and everything is read again: nothing doubles, and no key has to be looked up.
func TestWarmAfterAFlushEndsVerifyMode(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	truth := w.produce(8000, 21).all()
	w.mustDrain(settings{member: "-"})
	w.verify(truth)
	rows := w.s.sql(t, "SELECT count() FROM %s", w.table)

	rdb := redis.NewClient(&redis.Options{Addr: w.s.redis})
	defer func() { _ = rdb.Close() }()
	if err := rdb.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := w.command("warm", "-c", w.config(settings{}))
	if code != 0 || !strings.Contains(strings.ReplaceAll(stdout, ",", ""), rows+" keys remembered 0 known already") {
		t.Fatalf("warm ended with %d, want %s keys:\n%s%s", code, rows, stdout, stderr)
	}
	for p := range 2 {
		args := []string{"offsets", "resolve", "-c", w.config(settings{}), "--topic", w.topic, "--partition", string(rune('0' + p)), "--to", "0"}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
			if code, stdout, stderr = w.command(append(args, "--apply")...); code == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("offsets resolve ended with %d:\n%s%s", code, stdout, stderr)
			}
		}
	}
	got := w.mustDrain(settings{member: "-"})
	if !strings.HasPrefix(got, "consumed 8000 = inserted 0 + duplicates 8000 ") {
		t.Errorf("after warming the drain said %q", got)
	}
	w.verify(truth)
}
