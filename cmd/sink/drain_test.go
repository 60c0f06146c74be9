package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/progress"
)

// A partition that stopped for a decision is not drained, whatever the others are; a script must see that, and a reader of the log only once.
func TestADrainWithAStoppedPartitionIsNotDrained(t *testing.T) {
	at, stop := startDev(t)
	t.Cleanup(func() { _ = stop() })
	do(t, t.Context(), at, "CREATE TABLE stops (id UInt64, amount Int64) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 1000",
		func(k *kadm.Client) error {
			_, err := k.CreateTopic(t.Context(), 1, 1, nil, "stops")
			return err
		})
	client, err := kgo.NewClient(kgo.SeedBrokers(at["kafka"]), kgo.DefaultProduceTopic("stops"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	send := func(text string) {
		t.Helper()
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(text)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	config := file(t, `
kafka: {brokers: ["`+at["kafka"]+`"], group: g}
clickhouse: {addresses: ["`+at["clickhouse"]+`"], insert_deadline: 1s}
redis: {addresses: ["`+at["redis"]+`"]}
http: {listen: ""}
batch: {max_age: 50ms}
routes: [{topics: [stops], table: stops, key: [id], on_conflict: stop, dead_letter: stops.dlq}]
`)
	send(`{"id":1,"amount":1}`)
	code, stdout, stderr := sink(t, "run", "--drain", "-c", config)
	if code != exitDone || stdout != "consumed 1 = inserted 1 + duplicates 0 + conflicts 0 + dead letters 0 + filtered 0\n" {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	if n := strings.Count(stderr, `"msg":"stopped","reason":"drained","committed":"stops/0 at 1","account":"consumed 1 = inserted 1 + `); n != 1 {
		t.Errorf("the end is told %d times, want once: %s", n, stderr)
	}
	send(`{"id":1,"amount":2}`)
	code, stdout, stderr = sink(t, "run", "--drain", "--json", "-c", config)
	var said struct {
		Drained bool
		Stopped map[string]map[string]string
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || code != exitNo || said.Drained || said.Stopped["stops/0"]["reason"] == "" || said.Stopped["stops/0"]["cure"] == "" {
		t.Errorf("%d %v %s", code, err, stdout)
	}
	if n := strings.Count(stderr, said.Stopped["stops/0"]["reason"]); n != 1 {
		t.Errorf("the stop is logged %d times, want once: %s", n, stderr)
	}
}

func TestADrainTellsHowFarItIs(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return now }
	logged := drainShow{log: slog.New(slog.NewTextHandler(&out, nil)), now: clock}
	shown := drainShow{screen: progress.NewScreen(&out), now: clock}
	steps := func(d *drainShow) string {
		out.Reset()
		for i := range 250 {
			d.tell(int64(i)*100, 25_000)
			now = now.Add(100 * time.Millisecond)
		}
		d.tell(25_000, 25_000)
		d.done()
		return out.String()
	}
	if text := steps(&logged); strings.Count(text, "msg=draining") != 2 || !strings.Contains(text, `done=20000 of=25000 share="80 %" speed="1,000/s, 5s left"`) {
		t.Errorf("not two lines in 25 s:\n%s", text)
	}
	if text := steps(&shown); !strings.Contains(text, " 40 % 10,000 of 25,000 records (1,000/s, 15s left)") || !strings.HasSuffix(strings.TrimRight(text, "\n "), "100 % 25,000 of 25,000 records (1,000/s)") {
		t.Errorf("no bar: %q", text)
	}
}
