// Package wiring puts a sink together from its configuration: clients, targets,
// the shell that consumes, and the adapters between the rooms.
//
// It opens what it is told to, in order, and closes it in the reverse order; it
// decides nothing about records.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/fetchpool"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// KafkaOptions are what every client of this configuration has in common.
func KafkaOptions(cfg *config.Config) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Kafka.Brokers...),
		kgo.ClientID(clientID()),
		kgo.RetryTimeout(20 * time.Second),
		kgo.DialTimeout(5 * time.Second),
	}
	if cfg.Kafka.TLS != nil {
		t, err := cfg.KafkaTLS()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(t))
	}
	if cfg.Kafka.SASL != nil {
		m, err := cfg.KafkaSASL()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func clientID() string {
	host, err := os.Hostname()
	if err != nil {
		return "oncesink"
	}
	return "oncesink-" + host
}

// consumerOptions are those of the consuming client.
func consumerOptions(cfg *config.Config, topics []string) []kgo.Opt {
	// Compressed bytes. They come out several times as large, each record takes
	// about as much again, two fetches are held ready, and none of that is in the
	// workers' budget yet.
	fetch := int32(min(max(int64(cfg.Memory.Limit)/64, 1<<20), 32<<20))
	opts := []kgo.Opt{
		kgo.ConsumerGroup(cfg.Kafka.Group),
		kgo.ConsumeTopics(topics...),
		kgo.SessionTimeout(cfg.Kafka.SessionTimeout),
		kgo.RebalanceTimeout(cfg.Kafka.RebalanceTimeout),
		kgo.HeartbeatInterval(min(3*time.Second, cfg.Kafka.SessionTimeout/4)),
		kgo.FetchMaxBytes(fetch),
		kgo.FetchMaxPartitionBytes(max(fetch/8, 512<<10)),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.MaxConcurrentFetches(2),
		kgo.WithPools(fetchpool.New()),
	}
	if cfg.Kafka.Isolation == "read_committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if cfg.Kafka.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.Kafka.InstanceID))
	}
	return opts
}

// Topics resolves the routes' topics and patterns against what Kafka has.
// A topic that is named and missing is an error; a pattern may match nothing.
func Topics(ctx context.Context, cfg *config.Config, cluster *offsets.Cluster) (map[string]offsets.Topic, error) {
	var named []string
	patterns := false
	for i := range cfg.Routes {
		named = append(named, cfg.Routes[i].Topics...)
		patterns = patterns || cfg.Routes[i].TopicPattern != ""
	}
	sort.Strings(named)
	topics := map[string]offsets.Topic{}
	if len(named) > 0 {
		found, err := cluster.Topics(ctx, named...)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil, missingTopics(ctx, cfg, cluster, named, err)
		}
		if err != nil {
			return nil, err
		}
		for n, t := range found {
			topics[n] = t
		}
	}
	if patterns {
		all, err := cluster.Topics(ctx)
		if err != nil {
			return nil, err
		}
		for n, t := range all {
			if !t.Internal && len(cfg.RoutesOf(n)) > 0 {
				topics[n] = t
			}
		}
	}
	for n, t := range topics {
		if t.ID == (batcher.TopicID{}) {
			return nil, &offsets.NoTopicIDError{Topic: n}
		}
	}
	return topics, nil
}

// missingTopics names all the topics that aren't there.
func missingTopics(ctx context.Context, cfg *config.Config, cluster *offsets.Cluster, named []string, first error) error {
	unfit := &Unfit{}
	for _, topic := range named {
		if _, err := cluster.Topics(ctx, topic); errors.Is(err, kerr.UnknownTopicOrPartition) {
			unfit.Findings = append(unfit.Findings, MissingTopic(cfg, topic))
		}
	}
	if len(unfit.Findings) == 0 {
		return first
	}
	return unfit
}

// owners asks Kafka whether owners of claims can still come (F6). Answers are
// kept for a moment, since many claims have the same owner group.
type owners struct {
	cluster *offsets.Cluster
	log     *slog.Logger

	mu        sync.Mutex
	live      map[string]bool
	committed map[string]progress
	asked     time.Time
}

// progress is what the group of an owner has committed of its partition.
type progress struct {
	offset int64
	intent *offsets.Intent
}

const ownersFresh = 500 * time.Millisecond

// Gone tells what became of the owner.
func (o *owners) Gone(ctx context.Context, owner dedup.Owner) (pipeline.Fate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.asked) > ownersFresh {
		o.live, o.committed, o.asked = map[string]bool{}, map[string]progress{}, time.Now()
	}
	at := owner.Group + "\x00" + owner.Source.String()
	committed, known := o.committed[at]
	if !known {
		c, err := o.cluster.Committed(ctx, owner.Group, owner.Source.Topic, owner.Source.Partition)
		switch {
		case isGoneTopic(err):
			return pipeline.Fate{Gone: true, Passed: true}, nil // the topic was deleted since: nobody reads that record, nor completes it
		case err != nil:
			return pipeline.Fate{}, err
		}
		committed.offset = c.Offset
		committed.intent, _ = offsets.Decode(c.Metadata) // what can't be read is told by whoever has the partition
		o.committed[at] = committed
	}
	if owner.Offset < committed.offset {
		return pipeline.Fate{Gone: true, Passed: true}, nil
	}
	live, known := o.live[owner.Group]
	if !known {
		s, err := o.cluster.GroupState(ctx, owner.Group)
		if err != nil {
			return pipeline.Fate{}, err
		}
		live = s.Live()
		o.live[owner.Group] = live
	}
	return pipeline.Fate{Gone: !live, Listed: committed.intent.Lists(owner.Offset)}, nil
}

func describe(topics map[string]offsets.Topic) string {
	names := make([]string, 0, len(topics))
	for n, t := range topics {
		names = append(names, fmt.Sprintf("%s (%s)", n, Plural(t.Partitions, "partition")))
	}
	sort.Strings(names)
	return fmt.Sprint(names)
}
