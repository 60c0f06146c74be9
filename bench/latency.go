package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/embedded/child"
)

// latency is the time from a record's making to its row's being there.
type latency struct {
	Rate    int           `json:"records_per_second"`
	Seconds int           `json:"seconds"`
	MaxAge  time.Duration `json:"max_age_ns"`
	Rows    int64         `json:"rows"`
	Parts   int64         `json:"parts"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Most    time.Duration `json:"max_ns"`
}

// latency runs the sink beside a producer of fixed rate. Each record carries
// the time of its making, taken just before it is given to the Kafka client,
// and its row tells in which part of the table it lies; system.part_log tells
// when that part became visible, on the same clock. Merges, which would move
// rows to other parts, are stopped. So nothing has to be polled, and every row
// counts. The producer's own linger of 5 ms is part of the figure.
func (b *bench) latency(ctx context.Context) (_ *latency, err error) {
	const name, topic = "latency", "settlements-paced"
	l := &latency{Rate: b.rate, Seconds: b.seconds, MaxAge: 100 * time.Millisecond}
	b.tell("latency: %d records a second for %d s, max_age %s", l.Rate, l.Seconds, l.MaxAge)
	for _, sql := range []string{
		load.Table(name, window) + ", parts_to_delay_insert = 100000, parts_to_throw_insert = 100000", "SYSTEM STOP MERGES " + name,
	} {
		if err := b.ask.exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	if _, err := b.ask.emptyStore(ctx); err != nil {
		return nil, err
	}
	if err := b.open(ctx, name); err != nil {
		return nil, err
	}
	if err := load.CreateTopic(ctx, b.kafka, topic, b.partitions); err != nil {
		return nil, err
	}
	config, err := configure(b.dir, b.stack, route{group: name, topic: topic, table: name, age: l.MaxAge, inserts: 1000})
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	sink, err := child.Start(child.Options{Name: "sink run", Path: b.sink, Args: []string{"run", "-c", config}, Output: &said})
	if err != nil {
		return nil, err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if stopErr := sink.Stop(stopping); err == nil {
			err = stopErr
		}
	}()
	// A thousand before those that count: by then every connection is made.
	first, err := b.await(ctx, sink, name, func() (load.Truth, error) {
		t, err := b.paced(ctx, topic, b.seed+1, 1000, 1000)
		return sum(t, b.first), err
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	second, err := b.await(ctx, sink, name, func() (load.Truth, error) {
		t, err := b.paced(ctx, topic, b.seed+2, l.Rate*l.Seconds, l.Rate)
		return sum(t, first), err
	})
	if err != nil {
		return nil, err
	}
	if err := b.ask.once(ctx, name, second); err != nil {
		return nil, err
	}
	if err := b.ask.exec(ctx, "SYSTEM FLUSH LOGS"); err != nil {
		return nil, err
	}
	// In microseconds. The clock that create_time was taken from has milliseconds.
	const age = "toUnixTimestamp64Micro(at) - toUnixTimestamp64Milli(create_time) * 1000"
	n, err := b.ask.numbers(ctx, fmt.Sprintf(`(SELECT create_time, _part AS part FROM %[1]s WHERE toUnixTimestamp64Milli(create_time) >= %[2]d) AS r
INNER JOIN (SELECT part_name AS part, min(event_time_microseconds) AS at FROM system.part_log WHERE event_type = 'NewPart' AND database = currentDatabase() AND table = '%[1]s' GROUP BY part) AS p USING part`,
		name, began.UnixMilli()),
		"count()", "uniqExact(part)", "quantileExact(0.5)("+age+")", "quantileExact(0.99)("+age+")", "max("+age+")")
	if err != nil {
		return nil, err
	}
	if want := second.Keys - first.Keys; n[0] != want {
		return nil, fmt.Errorf("latency: the part log knows the parts of %d rows out of %d", n[0], want)
	}
	l.Rows, l.Parts = n[0], n[1]
	l.P50, l.P99, l.Most = time.Duration(n[2])*time.Microsecond, time.Duration(n[3])*time.Microsecond, time.Duration(n[4])*time.Microsecond
	return l, nil
}

func (b *bench) paced(ctx context.Context, topic string, seed uint64, rows, perSecond int) (load.Truth, error) {
	g := load.New(load.Options{Seed: seed, Rows: rows, Duplicates: b.duplicates, Elsewhere: b.elsewhere, Partitions: b.partitions})
	err := load.Produce(ctx, b.kafka, topic, g, perSecond, nil)
	return g.Truth(), err
}

// await produces and waits until all of it is in the table.
func (b *bench) await(ctx context.Context, sink *child.Process, table string, produce func() (load.Truth, error)) (load.Truth, error) {
	t, err := produce()
	if err != nil {
		return t, err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		n, err := b.ask.numbers(ctx, table, "count()")
		switch {
		case err != nil:
			return t, err
		case n[0] >= t.Keys:
			return t, nil
		case !sink.Running():
			return t, sink.Failure()
		case time.Now().After(deadline):
			return t, fmt.Errorf("latency: %d of %d rows came within a minute", n[0], t.Keys)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
