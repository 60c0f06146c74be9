package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startDev runs `sink dev` on free ports and returns where it is, and what stops it.
func startDev(t *testing.T, args ...string) (at map[string]string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error, 1)
	var errs strings.Builder
	go func() {
		args := append([]string{"dev", "--kafka=0", "--clickhouse=0", "--clickhouse-http=0", "--redis=0", "--json"}, args...)
		err := run(ctx, args, func(string) (string, bool) { return "", false }, strings.NewReader(""), write, &errs)
		_ = write.CloseWithError(io.EOF)
		done <- err
	}()
	line, err := bufio.NewReader(read).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &at) != nil {
		cancel()
		t.Fatalf("%q, %v, %v: %s", line, err, <-done, errs.String())
	}
	var stopped bool
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	return at, stop
}

func TestDevServesRealClientsKeepsItsDataAndStopsCleanly(t *testing.T) {
	data := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	at, stop := startDev(t, "--data", data)
	do(t, ctx, at, "CREATE TABLE kept (x UInt8) ENGINE = MergeTree ORDER BY x", func(k *kadm.Client) error {
		_, err := k.CreateTopic(ctx, 3, 1, nil, "kept")
		return err
	})
	if err := stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	for name, addr := range at {
		if conn, err := net.Dial("tcp", addr); name != "data" && err == nil {
			_ = conn.Close()
			t.Errorf("%s at %s still answers", name, addr)
		}
	}

	at, stop = startDev(t, "--data", data)
	do(t, ctx, at, "INSERT INTO kept SELECT 1", func(k *kadm.Client) error {
		topics, err := k.ListTopics(ctx, "kept")
		if n := len(topics["kept"].Partitions); err == nil && n != 3 {
			t.Errorf("the topic came back with %d partitions", n)
		}
		return err
	})
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// do talks to all three servers with their usual clients.
func do(t *testing.T, ctx context.Context, at map[string]string, sql string, kafka func(*kadm.Client) error) {
	t.Helper()
	client, err := ch.Dial(ctx, ch.Options{Address: at["clickhouse"]})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := client.Do(ctx, ch.Query{Body: sql}); err != nil {
		t.Error(err)
	}
	k, err := kgo.NewClient(kgo.SeedBrokers(at["kafka"]))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := kafka(kadm.NewClient(k)); err != nil {
		t.Error(err)
	}
	r := redis.NewClient(&redis.Options{Addr: at["redis"]})
	defer func() { _ = r.Close() }()
	if err := r.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}

func TestDevOnPortsThatAreTakenNamesTheirOptionsAndLeavesNothingBehind(t *testing.T) {
	args, want := []string{"dev"}, []string(nil)
	for _, option := range []string{"--kafka", "--clickhouse", "--clickhouse-http", "--redis"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		args, want = append(args, option, port), append(want, option+" "+port+": address already in use")
	}
	code, stdout, stderr := sink(t, args...)
	if code != exitFailed || stdout != "" || stderr != "sink: dev: can't listen: "+strings.Join(want, ", ")+"; choose other ports with these options, 0 for a free one\n" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	code, _, stderr = sink(t, "dev", "--kafka=0", "--clickhouse=0", "--clickhouse-http=0", args[7], args[8])
	if code != exitFailed || !strings.Contains(stderr, want[3]) || strings.Contains(stderr, "--kafka ") {
		t.Errorf("%d %q", code, stderr)
	}
}
