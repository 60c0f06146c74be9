// Package ops holds what operators do beside running the sink: check a set-up,
// look at offsets, resolve what stopped. Each command reads first and says what
// it would do; nothing here writes rows.
package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/wiring"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// metadataLeast is the least offset.metadata.max.bytes that holds an intent of
// one batch and one late set, and the epochs of as many hash-tag groups as a
// domain may have.
const metadataLeast = 1400

// Check asks Kafka, ClickHouse and Redis whether this configuration can keep
// its promises. It finds as much as it can: a server that is away is a finding,
// not the end.
func Check(ctx context.Context, cfg *config.Config) []wiring.Finding {
	c := &checker{cfg: cfg}
	c.kafka(ctx)
	c.store(ctx)
	server, err := wiring.Server(cfg, writer.Events{})
	if err != nil {
		c.add(wiring.SeverityError, "clickhouse_config", "clickhouse", err.Error(), "")
		return c.found
	}
	defer server.Close()
	for i := range cfg.Routes {
		if !c.route(ctx, server, &cfg.Routes[i]) {
			break // the other routes would say the same
		}
	}
	return c.found
}

type checker struct {
	cfg   *config.Config
	found []wiring.Finding
}

func (c *checker) add(severity, code, about, reason, cure string) {
	c.found = append(c.found, wiring.Finding{Severity: severity, Code: code, About: about, Reason: reason, Cure: cure})
}

// unasked notes a server that gave no answer: what it would say is not known.
func (c *checker) unasked(code, about string, err error) {
	c.found = append(c.found, wiring.Finding{Severity: wiring.SeverityError, Code: code, About: about, Reason: "could not ask: " + err.Error(), Unasked: true})
}

const checkPatience = 10 * time.Second

func (c *checker) kafka(ctx context.Context) {
	opts, err := wiring.KafkaOptions(c.cfg)
	if err != nil {
		c.add(wiring.SeverityError, "kafka_config", "kafka", err.Error(), "")
		return
	}
	cl, err := kgo.NewClient(append(opts, kgo.RetryTimeout(checkPatience/2))...)
	if err != nil {
		c.add(wiring.SeverityError, "kafka_config", "kafka", err.Error(), "")
		return
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	cluster := offsets.NewCluster(cl)
	if err := cluster.Reach(ctx); err != nil {
		c.unasked("kafka_unreachable", "kafka", err)
		return
	}
	if _, err := cluster.ID(ctx); err != nil {
		c.add(wiring.SeverityError, "kafka_cluster_id", "kafka", err.Error(), "")
	}
	c.topics(ctx, cluster)
	if _, err := cluster.GroupState(ctx, c.cfg.Kafka.Group); err != nil {
		c.add(wiring.SeverityError, "kafka_group", "group "+c.cfg.Kafka.Group, err.Error(), "")
	}
	switch limit, assumed := cluster.MetadataLimit(ctx); {
	case assumed != nil:
		c.add(wiring.SeverityInfo, "metadata_limit_assumed", "kafka", fmt.Sprintf("offset.metadata.max.bytes can't be read, %d is assumed: %s", limit, assumed), "")
	case limit < metadataLeast:
		c.add(wiring.SeverityError, "metadata_limit", "kafka", fmt.Sprintf("offset.metadata.max.bytes is %d: the list of inserts under way does not fit", limit),
			fmt.Sprintf("set offset.metadata.max.bytes=%d in every broker's server.properties", offsets.DefaultMetadataLimit))
	}
}

func (c *checker) topics(ctx context.Context, cluster *offsets.Cluster) {
	for i := range c.cfg.Routes {
		r := &c.cfg.Routes[i]
		for _, name := range r.Topics {
			topics, err := cluster.Topics(ctx, name)
			switch {
			case errors.Is(err, kerr.UnknownTopicOrPartition):
				c.found = append(c.found, wiring.MissingTopic(c.cfg, name))
			case err != nil:
				c.add(wiring.SeverityError, "kafka_topic", "topic "+name, err.Error(), "")
			case topics[name].ID == (batcher.TopicID{}):
				err := &offsets.NoTopicIDError{Topic: name}
				c.add(wiring.SeverityError, "kafka_topic_id", "topic "+name, err.Error(), "")
			}
		}
		if r.DeadLetter == "" {
			c.add(wiring.SeverityWarning, "no_dead_letter", "route into "+r.Table, "no dead_letter topic: a record that can't be written stops its partition", "set routes[].dead_letter")
			continue
		}
		switch _, err := cluster.Topics(ctx, r.DeadLetter); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			c.add(wiring.SeverityInfo, "dead_letter_missing", "topic "+r.DeadLetter, "the dead-letter topic is not there yet; the sink creates it when it may", "")
		case err != nil:
			c.add(wiring.SeverityError, "dead_letter", "topic "+r.DeadLetter, err.Error(), "")
		}
	}
}

// route checks a route's table. False: ClickHouse gives no answer.
func (c *checker) route(ctx context.Context, server *writer.Server, r *config.Route) (answers bool) {
	ctx, cancel := context.WithTimeout(ctx, 3*checkPatience)
	defer cancel()
	about := "table " + c.cfg.Qualified(r.Table)
	t, err := server.Describe(ctx, r.Table)
	if err != nil {
		missing, is := wiring.TargetMissing(c.cfg, r, err)
		switch {
		case is:
			c.found = append(c.found, missing)
		case wiring.Unasked(err):
			c.unasked("clickhouse_unreachable", "clickhouse", err)
			return false
		default:
			c.add(wiring.SeverityError, "clickhouse_table", about, err.Error(), "")
		}
		return true
	}
	if _, err := wiring.Decoder(r, t); err != nil {
		c.add(wiring.SeverityError, "columns", about, err.Error(), "")
	}
	found, err := wiring.TargetFindings(ctx, c.cfg, server, t, r)
	switch {
	case err == nil:
	case wiring.Unasked(err):
		c.unasked("clickhouse_unreachable", about, err)
	default:
		c.add(wiring.SeverityError, "clickhouse_check", about, err.Error(), "")
	}
	c.found = append(c.found, found...)
	c.found = append(c.found, wiring.DomainFindings(ctx, c.cfg, r, t)...)
	c.found = append(c.found, wiring.MissingFindings(c.cfg, r, t)...)
	return true
}

func (c *checker) store(ctx context.Context) {
	sc, err := wiring.StoreConfig(c.cfg)
	if err != nil {
		c.add(wiring.SeverityError, "redis_config", "redis", err.Error(), "")
		return
	}
	c.found = append(c.found, wiring.StoreFindings(ctx, sc)...)
}
