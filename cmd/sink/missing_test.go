package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A target that isn't there is the answer no, at once and with the statement that mends it, from check and from run alike. Waiting for it would look
// like a sink that works. A server that is away is another thing: then there is no answer yet.
func TestAMissingTopicOrTableIsRefusedWithItsCure(t *testing.T) {
	at, stop := startDev(t)
	t.Cleanup(func() { _ = stop() })
	text := func(kafka, clickhouse string) string {
		return file(t, `
kafka: {brokers: ["`+kafka+`"], group: g, startup_timeout: 20s}
clickhouse: {addresses: ["`+clickhouse+`"], database: default}
redis: {addresses: ["`+at["redis"]+`"]}
http: {listen: ""}
routes: [{topics: [orders, returns], table: missing_orders, key: [settle_ms, id], event_time: settle_ms, ignore: [made], dead_letter: orders.dlq}]
`)
	}
	config := text(at["kafka"], at["clickhouse"])
	ask := func(want int, args []string, parts ...string) string {
		t.Helper()
		began := time.Now()
		code, stdout, stderr := sink(t, append(args, "-c", config)...)
		if code != want {
			t.Errorf("sink %v: %d, want %d\n%s%s", args, code, want, stdout, stderr)
		}
		for _, p := range parts {
			if !strings.Contains(stdout+stderr, p) {
				t.Errorf("sink %v doesn't say %q:\n%s%s", args, p, stdout, stderr)
			}
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("sink %v waited for %s", args, took)
		}
		return stdout
	}
	kafkaCure := "kafka-topics.sh --bootstrap-server " + at["kafka"] + " --create --topic "
	ask(exitNo, []string{"run", "--drain"}, "topic orders", "topic returns", kafkaCure+"orders", kafkaCure+"returns")
	said := ask(exitNo, []string{"check"}, kafkaCure+"orders", kafkaCure+"returns", "unfit: 3 errors", "CREATE TABLE default.missing_orders (")
	if strings.Contains(said, "UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("in the protocol's words: %s", said)
	}

	client, err := kgo.NewClient(kgo.SeedBrokers(at["kafka"]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(t.Context(), 1, 1, nil, "orders", "returns"); err != nil {
		t.Fatal(err)
	}
	ask(exitNo, []string{"run", "--drain"}, "table default.missing_orders", "ENGINE = MergeTree ORDER BY (settle_ms, id)", "non_replicated_deduplication_window")
	said = ask(exitNo, []string{"check"}, "unfit: 1 error, ")
	cure := regexp.MustCompile(`cure: (CREATE TABLE .*)`).FindStringSubmatch(said)
	if cure == nil {
		t.Fatalf("no statement in %s", said)
	}
	do(t, t.Context(), at, cure[1], func(*kadm.Client) error { return nil })
	ask(exitDone, []string{"check"}, "fit: 0 errors")
	ask(exitDone, []string{"run", "--drain"}, "consumed 0 = ")

	config = text(at["kafka"], "127.0.0.1:1")
	ask(exitFailed, []string{"check"}, "could not ask", "not known: 1 error", "1 server could not be asked")
	config = text("127.0.0.1:1", at["clickhouse"])
	if code, stdout, _ := sink(t, "check", "--json", "-c", config); code != exitFailed || !strings.Contains(stdout, `"asked":false`) || !strings.Contains(stdout, `"fit":false`) {
		t.Errorf("%d %s", code, stdout)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out, errs strings.Builder
	if err := run(ctx, []string{"run", "-c", config}, func(string) (string, bool) { return "", false }, strings.NewReader(""), &out, &errs); err != nil || !strings.Contains(errs.String(), "waiting for a server") {
		t.Errorf("a server that is away is waited for: %v %s", err, errs.String())
	}
}
