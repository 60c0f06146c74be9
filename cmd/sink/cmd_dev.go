package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oncesink/oncesink/internal/embedded"
)

var devCommand = &command{
	name: "dev", summary: "the embedded Kafka, Redis and ClickHouse on loopback ports, to try things",
	about: "Any client can talk to them: kcat, redis-cli, clickhouse-client, curl. Without --data nothing is kept.\n" +
		"They serve trials and tests, not production: no passwords, loopback only. It runs until it is stopped (Ctrl-C).",
	examples: []string{
		"sink dev",
		"sink dev --data ~/sink-data        # topics, groups, tables and keys survive a restart",
		"sink dev --kafka 0 --clickhouse 0 --clickhouse-http 0 --redis 0 --json   # free ports, told as one JSON object",
	},
	run: runDev,
}

// stopStack bounds the clean stop: what isn't down by then is killed.
const stopStack = 20 * time.Second

func runDev(ctx context.Context, env *environment, args []string) (err error) {
	o := embedded.StackOptions{Kafka: 9092, ClickHouse: 9000, ClickHouseHTTP: 8123, Redis: 6379, Output: io.Discard}
	f, asJSON, verbose := env.options(), false, false
	f.number(&o.Kafka, "kafka", "PORT", "Kafka's port; 0: a free one")
	f.number(&o.ClickHouse, "clickhouse", "PORT", "ClickHouse's native port; 0: a free one")
	f.number(&o.ClickHouseHTTP, "clickhouse-http", "PORT", "ClickHouse's HTTP port; 0: a free one")
	f.number(&o.Redis, "redis", "PORT", "Redis' port; 0: a free one")
	f.text(&o.DataDir, "data", "DIR", "where everything is kept; without it, nowhere")
	f.flag(&asJSON, "json", "the addresses as one JSON object")
	f.flag(&verbose, "verbose", "what the servers have to say, on stderr")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	for name, port := range map[string]int{"kafka": o.Kafka, "clickhouse": o.ClickHouse, "clickhouse-http": o.ClickHouseHTTP, "redis": o.Redis} {
		if port < 0 || port > 65535 {
			return f.usage("--%s %d is no port", name, port)
		}
	}
	if err := portsFree(ctx, o); err != nil {
		return err
	}
	if verbose {
		o.Output = env.stderr
	}
	stack, err := embedded.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopStack)
		defer cancel()
		err = errors.Join(err, stack.Stop(stopping))
	}()
	if err := tellStack(env, stack, o.DataDir, asJSON); err != nil {
		return err
	}
	return stack.Failed(ctx)
}

// portsFree waits a moment for ports that the servers of a killed stack are about to leave.
func portsFree(ctx context.Context, o embedded.StackOptions) error {
	for until := time.Now().Add(embedded.PortPatience); ; time.Sleep(50 * time.Millisecond) {
		if err := portsTaken(o); err == nil || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
	}
}

// portsTaken tells which of the chosen ports are taken, all at once and by their options, before anything is started.
func portsTaken(o embedded.StackOptions) error {
	var taken []string
	for _, c := range []struct {
		option string
		port   int
	}{{"--kafka", o.Kafka}, {"--clickhouse", o.ClickHouse}, {"--clickhouse-http", o.ClickHouseHTTP}, {"--redis", o.Redis}} {
		if c.port == 0 {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)))
		if err != nil {
			var number syscall.Errno
			if errors.As(err, &number) {
				err = number
			}
			taken = append(taken, fmt.Sprintf("%s %d: %s", c.option, c.port, err))
			continue
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("dev: can't listen: %s; choose other ports with these options, 0 for a free one", strings.Join(taken, ", "))
	}
	return nil
}

func tellStack(env *environment, s *embedded.Stack, data string, asJSON bool) error {
	if s.Redis.InProcess() {
		_, _ = fmt.Fprintln(env.stderr, "sink: no redis-server was found; the one in this process keeps nothing over a restart and knows fewer commands")
	}
	if asJSON {
		return json.NewEncoder(env.stdout).Encode(map[string]string{
			"kafka": s.Kafka.Addr, "clickhouse": s.Engine.TCPAddr, "clickhouse_http": s.Engine.HTTPAddr, "redis": s.Redis.Addr, "data": data,
		})
	}
	kept := "kept nowhere; --data DIR keeps it"
	if data != "" {
		kept = "kept in " + data
	}
	_, err := fmt.Fprintf(env.stdout, "kafka       %s\nclickhouse  %s (HTTP %s)\nredis       %s\ndata        %s\nready; Ctrl-C stops\n",
		s.Kafka.Addr, s.Engine.TCPAddr, s.Engine.HTTPAddr, s.Redis.Addr, kept)
	return err
}
