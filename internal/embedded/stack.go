// Package embedded is the stack that oncesink brings along: Kafka in this process, a redis-server and the ClickHouse engine as child processes,
// all on loopback ports, none of them a mock: any client can talk to them.
//
// They serve trials, the demo, tests and benchmarks. Not promised: security (no passwords, loopback only) and durability against power cuts.
// A program that starts the engine must call [MaybeRunChild] first thing, since the engine is a second process of the same program.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// StackOptions are the ports (0: a free one each) and the place of a whole stack.
type StackOptions struct {
	Kafka, ClickHouse, ClickHouseHTTP, Redis int
	DataDir                                  string    // topics, groups, tables, keys; "": a temporary folder, removed at Stop
	EngineLib                                string    // see [FindEngineLib]
	Output                                   io.Writer // what the servers have to say
}

// Stack is a running Kafka, Redis and ClickHouse.
type Stack struct {
	Kafka  *Kafka
	Redis  *Redis
	Engine *Engine

	dataDir  string
	ownsData bool
}

// Start starts the three servers, the two child processes at the same time. When one fails, none is left.
func Start(ctx context.Context, o StackOptions) (_ *Stack, err error) {
	s := &Stack{dataDir: o.DataDir}
	if s.dataDir == "" {
		if s.dataDir, err = os.MkdirTemp("", "oncesink-stack-"); err != nil {
			return nil, fmt.Errorf("start the embedded stack: %w", err)
		}
		s.ownsData = true
	} else if err := os.MkdirAll(s.dataDir, 0o755); err != nil {
		return nil, fmt.Errorf("start the embedded stack: %w", err)
	}
	if s.dataDir, err = filepath.Abs(s.dataDir); err != nil {
		return nil, fmt.Errorf("start the embedded stack: %w", err)
	}
	defer func() {
		if err != nil {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stackStopDeadline)
			defer cancel()
			err = errors.Join(err, s.Stop(stopping))
		}
	}()

	var starting sync.WaitGroup
	var engineErr, redisErr error
	starting.Go(func() {
		s.Engine, engineErr = StartEngine(ctx, EngineOptions{
			Lib: o.EngineLib, DataDir: filepath.Join(s.dataDir, "clickhouse"), TCPPort: o.ClickHouse, HTTPPort: o.ClickHouseHTTP, Stderr: o.Output,
		})
	})
	starting.Go(func() {
		s.Redis, redisErr = StartRedis(ctx, RedisOptions{Port: o.Redis, DataDir: filepath.Join(s.dataDir, "redis"), Output: o.Output})
	})
	var kafkaErr error
	s.Kafka, kafkaErr = StartKafka(ctx, KafkaOptions{Port: o.Kafka, DataDir: filepath.Join(s.dataDir, "kafka"), Output: o.Output})
	starting.Wait()
	return s, errors.Join(kafkaErr, redisErr, engineErr)
}

const stackStopDeadline = 15 * time.Second

// Stop ends Kafka first, so that consumers stop being fed, then the stores. All are ended, whatever fails.
func (s *Stack) Stop(ctx context.Context) error {
	var errs []error
	if s.Kafka != nil {
		s.Kafka.Stop()
	}
	if s.Redis != nil {
		errs = append(errs, s.Redis.Stop(ctx))
	}
	if s.Engine != nil {
		errs = append(errs, s.Engine.Stop(ctx))
	}
	if s.ownsData {
		errs = append(errs, os.RemoveAll(s.dataDir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the embedded stack: %w", err)
	}
	return nil
}

// Failed returns when the engine or Redis has ended without being asked to, with the reason, or when ctx is done, with nil.
func (s *Stack) Failed(ctx context.Context) error {
	select {
	case <-s.Engine.Exited():
		return s.Engine.Failure()
	case <-s.Redis.Exited():
		return s.Redis.proc.Failure()
	case <-ctx.Done():
		return nil
	}
}
