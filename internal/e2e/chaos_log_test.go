//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/faultproxy"
)

func logSchedules() []schedule {
	return []schedule{
		{name: "topic-created-again", alone: true, run: (*arena).topicAgain},
		{name: "topic-created-again-in-flight", alone: true, run: (*arena).topicAgainInFlight},
		{name: "partitions-added", span: 50 * time.Second, run: (*arena).morePartitions},
		{name: "records-deleted-ahead", alone: true, stops: "records that nobody had read are gone", run: (*arena).deletedAhead},
		{name: "kafka-restart", account: true, span: 24 * time.Second, run: (*arena).brokerRestarts},
	}
}

// awaitMade waits until so many records are made and in Kafka.
func (a *arena) awaitMade(n int) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		a.feed.mu.Lock()
		made := a.feed.gen.Made()
		a.feed.mu.Unlock()
		if made >= n {
			break
		}
		if ctx.Err() != nil {
			a.t.Fatalf("%d of %d records were made within two minutes", made, n)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := a.kafka.Flush(ctx); err != nil {
		a.t.Fatalf("produce to %s: %v", a.topic, err)
	}
}

// topicAgain: the topic is deleted when all of it was read, and created again: the same offsets then mean other records.
func (a *arena) topicAgain() {
	rows := a.feed.rows
	a.seatAll()
	a.watch()
	a.feed.allow(rows / 2)
	a.awaitMade(rows / 2)
	a.settleAll()
	a.createAgain()
	a.finish()
}

// topicAgainInFlight: the topic is deleted and created again while inserts of the old one hang. What nobody had read is gone with it, but the commit of what
// was under way must not skip records of the new one.
func (a *arena) topicAgainInFlight() {
	rows := a.feed.rows
	a.seatAll()
	a.watch()
	a.feed.allow(rows / 4)
	a.awaitMade(rows / 4)
	a.settleAll()
	a.toEngine.Stall(faultproxy.ToServer, true)
	a.feed.allow(rows / 2)
	a.awaitMade(rows / 2)
	time.Sleep(time.Second) // claimed, and on its way
	a.feed.end()
	early := a.feed.all()
	a.createAgain()
	a.watched()
	a.feed = a.produce(rows/2, a.rng.Uint64()) // keys of its own
	late := a.feed.all()
	a.toEngine.Stall(faultproxy.ToServer, false)
	a.settleAll()
	a.stopAll()
	a.drainAll()
	if a.t.Failed() {
		return
	}
	table, err := a.inTable()
	if err != nil {
		a.t.Fatal(err)
	}
	prefix := a.feed.gen.Recent()[0].ID[:len("st-0123456789abcdef-")]
	fresh, err := a.count2(fmt.Sprintf("SELECT * FROM %s WHERE startsWith(id, '%s')", a.table, prefix))
	if err != nil {
		a.t.Fatal(err)
	}
	a.lost, a.doubled = late.Keys-fresh.keys, table.rows-table.keys
	a.note("%d keys of the old topic, of which %d are in the table: the others were gone before they were read", early.Keys, table.keys-fresh.keys)
	if fresh.amount != late.Amount || fresh.rows != late.Keys || a.doubled != 0 {
		a.t.Errorf("of the new topic the table holds %+v, want %+v; in all it holds %+v", fresh, late, table)
	}
	view, err := a.inView(a.views[0])
	if err != nil || view.rows != table.rows || view.amount != table.amount {
		a.t.Errorf("the view holds %+v, its table %+v (%v)", view, table, err)
	}
	a.verifyOffsets()
}

// createAgain deletes the topic and creates it again.
func (a *arena) createAgain() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin := kadm.NewClient(a.kafka)
	before := a.topicID(ctx, admin)
	if _, err := admin.DeleteTopic(ctx, a.topic); err != nil {
		a.t.Fatal(err)
	}
	a.count("topic deleted")
	time.Sleep(a.between(500*time.Millisecond, 3*time.Second))
	for a.topicID(ctx, admin) == before || a.topicID(ctx, admin) == "" {
		if err := load.CreateTopic(ctx, a.kafka, a.topic, a.partitions); err != nil {
			a.t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	a.count("topic created again")
	// A producer that was there before sends to the topic that is gone.
	a.feed.mu.Lock()
	a.kafka = a.producer()
	a.feed.kafka = a.kafka
	a.feed.mu.Unlock()
}

func (a *arena) topicID(ctx context.Context, admin *kadm.Client) string {
	topics, err := admin.ListTopics(ctx, a.topic)
	if err != nil || topics[a.topic].Err != nil {
		return ""
	}
	return topics[a.topic].ID.String()
}

// morePartitions: the topic gets partitions that nobody knew of, and records go there at once.
func (a *arena) morePartitions() {
	a.feeding(3 * time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const more = 4
	if _, err := kadm.NewClient(a.kafka).CreatePartitions(ctx, more, a.topic); err != nil {
		a.t.Fatal(err)
	}
	a.add("partitions added", more)
	a.kafka.ForceMetadataRefresh()
	a.feeding(6 * time.Second) // the producer looks again after 5 s at the earliest
	n := int32(0)
	a.feed.mu.Lock()
	a.feed.place = func(p int32) int32 {
		if n++; n%3 == 0 {
			return int32(a.partitions) + n/3%more
		}
		return p
	}
	a.feed.mu.Unlock()
	for a.feeding(time.Second) {
	}
}

// deletedAhead: records of a partition are deleted before anybody read them, while the sinks are stopped. They are told as missing, the partition stops, and
// goes on behind the gap by the command that it names. The other partitions go on meanwhile.
func (a *arena) deletedAhead() {
	rows := a.feed.rows
	a.seatAll()
	a.watch()
	a.feed.allow(rows / 3)
	a.awaitMade(rows / 3)
	a.settleAll()
	for _, s := range a.seats {
		a.unseat(s, syscall.SIGTERM)
	}
	const doomed = 500
	var records []*kgo.Record
	others := load.New(load.Options{Seed: 77, Rows: doomed, Partitions: a.partitions}) // not in the truth: they are lost before anybody can read them
	for range doomed {
		value, _, _ := others.Next()
		records = append(records, &kgo.Record{Topic: a.topic, Partition: 0, Value: append([]byte(nil), value...)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.kafka.ProduceSync(ctx, records...).FirstErr(); err != nil {
		a.t.Fatal(err)
	}
	at := a.offsets()[0]
	var upTo kadm.Offsets
	upTo.Add(kadm.Offset{Topic: a.topic, Partition: 0, At: at.end})
	if _, err := kadm.NewClient(a.kafka).DeleteRecords(ctx, upTo); err != nil {
		a.t.Fatal(err)
	}
	a.add("records deleted unread", int(at.end-at.committed))
	for _, s := range a.seats {
		a.seat(s)
	}
	a.feed.allow(rows)
	a.awaitMade(rows)
	a.settleAll()
	line := a.stopped()
	if gap := fmt.Sprintf("[%d..%d]", at.committed, at.end-1); !strings.Contains(line, gap) {
		a.t.Errorf("the sinks say %q, which names no gap %s", line, gap)
	}
	a.finish()
	if a.stops != 1 {
		a.t.Errorf("%d partitions stopped, want 1", a.stops)
	}
}

// brokerRestarts: the broker stops in good order or is killed, and comes back.
func (a *arena) brokerRestarts() {
	for n := 0; a.feeding(a.between(3*time.Second, 5*time.Second)); n++ {
		if n%2 == 0 {
			a.broker.Stop()
			a.count("stops of the broker")
		} else {
			a.broker.Kill()
			a.count("kill -9 of the broker")
		}
		time.Sleep(a.between(500*time.Millisecond, 2*time.Second))
		a.broker.Start()
	}
}
