//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/deadletter"
	"github.com/oncesink/oncesink/internal/embedded"
)

// judge ends the attack, has everything settled, and looks.
func (r *rig) judge() {
	r.t.Helper()
	r.heal()
	r.endAll()
	r.feed.all()
	r.drainGroup(with{})
	for _, o := range r.groups {
		r.drainGroup(o)
	}
	r.look()
	r.seen.stop()
	truth := r.truth()
	table, err := r.inTable()
	if err != nil {
		r.t.Fatal(err)
	}
	r.lost, r.doubled = truth.Keys-table.keys, table.rows-table.keys
	want := found{rows: truth.Keys, keys: truth.Keys, amount: truth.Amount, qty: truth.Qty}
	if table != want {
		r.t.Errorf("table %s holds %+v, want %+v%s", r.table, table, want, r.doubles())
	}
	for _, v := range r.views {
		if got, err := r.inView(v); err != nil || got != want {
			r.t.Errorf("view target %s holds %+v, want %+v (%v)", v, got, want, err)
		}
	}
	if n := r.letteredRecords(); r.letters >= 0 && n != r.letters {
		r.t.Errorf("%d records in the dead letters, want %d: %v", n, r.letters, r.reasons())
	}
	for _, o := range append([]with{{}}, r.groups...) {
		for _, topic := range r.topicsOf(o) {
			if n := r.openIn(r.groupOf(o), topic); n != 0 {
				r.t.Errorf("%d records of %s are not committed past by %s", n, topic, r.groupOf(o))
			}
		}
	}
}

func (r *rig) groupOf(o with) string {
	if o.group == "" {
		return r.group
	}
	return o.group
}

func (r *rig) topicsOf(o with) (all []string) {
	if o.routes == nil {
		return []string{r.topic}
	}
	for _, topics := range o.routes {
		all = append(all, topics...)
	}
	return all
}

// end ends a sink in its own good order, if it has one.
func (r *rig) end(p *sink) {
	if !p.running() {
		return
	}
	thaw(p)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(45 * time.Second):
		r.note("%s did not stop within 45 s: %s", p.name, p.said(2))
		p.kill()
	}
}

func (r *rig) endAll() {
	for _, p := range r.running {
		r.end(p)
		if line := stopLine(p.said(10_000)); line != "" {
			r.note("%s: %s", p.name, line)
		}
	}
	r.running = nil
}

// drainGroup drains a group, by the way on that a partition names when it stopped.
func (r *rig) drainGroup(o with) {
	r.t.Helper()
	o.member = ""
	again := 0
	for round := 0; round < 8; round++ {
		p := r.sink(o, "--drain")
		code := p.wait(7 * time.Minute) // the server waits 5 minutes for the rest of a block whose client is silent
		if code == 0 {
			return
		}
		stderr := p.said(10_000)
		ways := waysOn(stderr)
		if code != 3 || len(ways) == 0 {
			if again++; again > 2 {
				r.t.Fatalf("the drain of %s ended with %d and no way on:\n%s", r.groupOf(o), code, stderr)
			}
			r.note("a drain ended with %d: %s", code, p.said(1))
			continue
		}
		for _, way := range ways {
			if slices.Contains(way, "--views-recomputed") {
				r.recompute()
				break
			}
		}
		for _, way := range ways {
			r.note("stopped: %s; taken: %v", stopLine(stderr), way)
			r.resolveWith(o, way...)
			r.stops++
		}
	}
	r.t.Errorf("%s still stops after 8 ways on", r.groupOf(o))
}

// resolveWith runs `sink offsets resolve`, until no member is left in the group.
func (r *rig) resolveWith(o with, way ...string) bool {
	r.t.Helper()
	args := append([]string{"offsets", "resolve", "-c", r.configOf(o)}, way...)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		code, stdout, stderr := r.command(args...)
		if code == 0 {
			return true
		}
		if strings.Contains(stderr, "not committed yet") {
			r.note("not yet: %v", way) // another partition's way on comes first, as it says
			return false
		}
		if !strings.Contains(stderr, "live member") || time.Now().After(deadline) {
			r.t.Errorf("%q ended with %d:\n%s%s", args, code, stdout, stderr)
			return false
		}
	}
}

// moveTo is `offsets resolve --to`.
func (r *rig) moveTo(partition int, offset int64) bool {
	r.t.Helper()
	return r.resolveWith(with{}, "--topic", r.topic, "--partition", fmt.Sprint(partition), "--to", fmt.Sprint(offset), "--apply")
}

// openIn is how many records a group has not committed past; -1: Kafka doesn't tell.
func (r *rig) openIn(group, topic string) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	admin := kadm.NewClient(r.kafka)
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil || ends.Error() != nil {
		return -1
	}
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return -1
	}
	open := int64(0)
	ends.Each(func(l kadm.ListedOffset) {
		c, _ := committed.Lookup(topic, l.Partition)
		open += l.Offset - c.At
	})
	return open
}

// resetByHand does what Kafka's own tool does: it commits other offsets, without the sink's metadata.
func (r *rig) resetByHand(group, topic string, to func(partition int32, committed int64) int64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	admin := kadm.NewClient(r.kafka)
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		r.t.Fatal(err)
	}
	var offsets kadm.Offsets
	for p := range int32(r.partitions) {
		c, _ := committed.Lookup(topic, p)
		offsets.Add(kadm.Offset{Topic: topic, Partition: p, At: to(p, max(c.At, 0)), LeaderEpoch: -1})
	}
	if !r.until(30*time.Second, func() bool {
		all, err := admin.CommitOffsets(ctx, group, offsets)
		return err == nil && all.Error() == nil
	}) {
		r.t.Errorf("the offsets of %s could not be reset", group)
	}
	r.count("offsets reset by hand")
}

func toStart(int32, int64) int64 { return 0 }

// resetByTool is Kafka's own tool.
func (r *rig) resetByTool(group, topic string, partition int, offset int64) {
	r.t.Helper()
	libs := filepath.Join(filepath.Dir(embedded.FindCached("kafka/.stamp")), "libs", "*")
	var said []byte
	if !r.until(40*time.Second, func() (done bool) {
		var err error
		said, err = exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", libs, "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
			"--bootstrap-server", r.broker.Addr, "--group", group, "--topic", fmt.Sprintf("%s:%d", topic, partition),
			"--reset-offsets", "--to-offset", fmt.Sprint(offset), "--execute").CombinedOutput()
		return err == nil && !strings.Contains(string(said), "Error:")
	}) {
		r.t.Errorf("Kafka's tool said %s", said)
	}
	r.count("resets by Kafka's tool")
}

// letteredRecords counts the distinct records in the dead letters.
func (r *rig) letteredRecords() int {
	r.t.Helper()
	left := r.deadLetters()
	if left == 0 {
		return 0
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.s.kafka), kgo.ConsumeTopics(r.world.letters), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seen := map[string]bool{}
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("%d letters can't be read", left)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			left--
			id := ""
			for _, h := range rec.Headers {
				if h.Key == deadletter.HeaderSource || h.Key == deadletter.HeaderOffset {
					id += "|" + string(h.Value)
				}
			}
			seen[id] = true
		})
	}
	return len(seen)
}

var wayOn = regexp.MustCompile(`sink offsets resolve -c CONFIG (--topic [^"` + "`" + `]*?--apply)`)

// waysOn are the commands that a log names for the partitions that stopped, one each.
func waysOn(stderr string) (out [][]string) {
	for line := range strings.Lines(stderr) {
		if m := wayOn.FindStringSubmatch(line); m != nil && strings.Contains(line, "partition stopped") {
			out = append(out, strings.Fields(m[1]))
		}
	}
	return out
}
