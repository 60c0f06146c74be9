package offsets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster asks Kafka for facts. Its errors are explained (see Explain); none of
// its methods waits longer than the client's own retries and ctx.
type Cluster struct {
	cl  *kgo.Client
	adm *kadm.Client
}

// NewCluster reads over the client, which stays the caller's.
func NewCluster(cl *kgo.Client) *Cluster { return &Cluster{cl: cl, adm: kadm.NewClient(cl)} }

// ErrTopicGone says that no topic has that id any more: it was deleted, and
// one created again under the name is another source.
var ErrTopicGone = errors.New("the topic exists no more")

// NoTopicIDError is a broker that gives its topics no ids.
type NoTopicIDError struct{ Topic string }

func (e *NoTopicIDError) Error() string {
	return fmt.Sprintf("the brokers give topic %s no id (they are older than 2.8, or speak an older protocol), so a topic deleted and created again can't be told from the first: set kafka.topic_epoch to a number, and raise it whenever a topic is created again", e.Topic)
}

// EpochTopicID stands in for the topic id where brokers have none: it names
// the topic as of an epoch that the operator raises.
func EpochTopicID(epoch uint64, topic string) batcher.TopicID {
	sum := sha256.Sum256([]byte("oncesink topic epoch\x00" + strconv.FormatUint(epoch, 10) + "\x00" + topic))
	return batcher.TopicID(sum[:16])
}

// Reach asks a broker for its versions once, without the client's retries for
// longer than ctx, and explains what stands in the way.
func (c *Cluster) Reach(ctx context.Context) error {
	if err := c.cl.Ping(ctx); err != nil {
		return Explain(err, Subject{Doing: "reach Kafka"})
	}
	return nil
}

// ID is the cluster id: the first part of every source.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	m, err := c.adm.BrokerMetadata(ctx)
	if err != nil {
		return "", Explain(err, Subject{Doing: "read the cluster id"})
	}
	if m.Cluster == "" {
		return "", errors.New("read the cluster id: the brokers tell none; a sink can't name its sources without it")
	}
	return m.Cluster, nil
}

// Topic is one topic as it is now.
type Topic struct {
	Name       string
	ID         batcher.TopicID // zero: the brokers have no ids, see NoTopicIDError
	Internal   bool
	Partitions int
	Replicas   int // replication factor of partition 0
}

// Topics describes the named topics, or all that the user may see. A named one
// that is missing is an error.
func (c *Cluster) Topics(ctx context.Context, names ...string) (map[string]Topic, error) {
	details, err := c.adm.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, Explain(err, Subject{Doing: "list topics", Topic: strings.Join(names, ", "), Operation: "DESCRIBE"})
	}
	topics := make(map[string]Topic, len(details))
	for name, d := range details {
		if d.Err != nil && len(names) == 0 {
			continue // listed, but not ours to see
		}
		if d.Err != nil {
			return nil, Explain(d.Err, Subject{Doing: "describe topic " + name, Topic: name, Operation: "DESCRIBE"})
		}
		topics[name] = Topic{Name: name, ID: batcher.TopicID(d.ID), Internal: d.IsInternal, Partitions: len(d.Partitions), Replicas: d.Partitions.NumReplicas()}
	}
	return topics, nil
}

// NameOf finds the present name of a topic id; ErrTopicGone when there is none.
func (c *Cluster) NameOf(ctx context.Context, id batcher.TopicID) (string, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.TopicID = id
	req.Topics = append(req.Topics, t)
	what := Subject{Doing: fmt.Sprintf("find topic id %x", id), Operation: "DESCRIBE", Topic: fmt.Sprintf("with id %x", id)}
	resp, err := req.RequestWith(ctx, c.cl)
	if err != nil {
		return "", Explain(err, what)
	}
	for _, t := range resp.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
			return "", fmt.Errorf("%s: %w", what.Doing, ErrTopicGone)
		case err != nil:
			return "", Explain(err, what)
		case t.Topic != nil && t.TopicID == id:
			return *t.Topic, nil
		}
	}
	return "", fmt.Errorf("%s: the brokers' answer leaves it out", what.Doing)
}

// Bounds is where a partition's log starts and ends.
type Bounds struct {
	Start  int64 // the oldest record kept
	Stable int64 // what read_committed may see: up to the first open transaction
	High   int64 // the high watermark: what read_uncommitted may see
}

// End is where a reader of that isolation finds the log at its end.
func (b Bounds) End(readCommitted bool) int64 {
	if readCommitted {
		return b.Stable
	}
	return b.High
}

// Bounds reads the log bounds of every partition of the topics.
func (c *Cluster) Bounds(ctx context.Context, topics ...string) (map[string]map[int32]Bounds, error) {
	all := map[string]map[int32]Bounds{}
	// Start before end, stable before high: taken the other way round a log
	// that moves could seem to end before it starts.
	for _, step := range []struct {
		what string
		list func(context.Context, ...string) (kadm.ListedOffsets, error)
		set  func(*Bounds, int64)
	}{
		{"start", c.adm.ListStartOffsets, func(b *Bounds, o int64) { b.Start = o }},
		{"stable end", c.adm.ListCommittedOffsets, func(b *Bounds, o int64) { b.Stable = o }},
		{"end", c.adm.ListEndOffsets, func(b *Bounds, o int64) { b.High = o }},
	} {
		listed, err := step.list(ctx, topics...)
		if err != nil {
			return nil, Explain(err, Subject{Doing: "read the " + step.what + " of the topics' logs", Topic: strings.Join(topics, ", "), Operation: "DESCRIBE"})
		}
		for topic, partitions := range listed {
			for n, o := range partitions {
				if o.Err != nil {
					return nil, Explain(o.Err, Subject{Doing: fmt.Sprintf("read the %s of the log of %s/%d", step.what, topic, n), Topic: topic, Operation: "DESCRIBE"})
				}
				if all[topic] == nil {
					all[topic] = map[int32]Bounds{}
				}
				b := all[topic][n]
				step.set(&b, o.Offset)
				all[topic][n] = b
			}
		}
	}
	return all, nil
}

// OpenTransaction is one that holds the stable offset of a partition back.
type OpenTransaction struct {
	ProducerID int64
	First      int64 // its first offset in the partition
	LastMs     int64 // when the producer last wrote there
}

// OpenTransactions names what holds back a partition whose Stable stays behind
// its High. It takes DESCRIBE and READ on the topic.
func (c *Cluster) OpenTransactions(ctx context.Context, topic string, partition int32) ([]OpenTransaction, error) {
	what := Subject{Doing: fmt.Sprintf("list the open transactions of %s/%d", topic, partition), Topic: topic}
	set := kadm.TopicsSet{}
	set.Add(topic, partition)
	described, err := c.adm.DescribeProducers(ctx, set)
	if err != nil {
		return nil, Explain(err, what)
	}
	var open []OpenTransaction
	for _, p := range described[topic].Partitions {
		if p.Err != nil {
			return nil, Explain(p.Err, what)
		}
		for _, d := range p.ActiveProducers.Sorted() {
			if d.CurrentTxnStartOffset >= 0 {
				open = append(open, OpenTransaction{ProducerID: d.ProducerID, First: d.CurrentTxnStartOffset, LastMs: d.LastTimestamp})
			}
		}
	}
	return open, nil
}

// DefaultMetadataLimit is what brokers come with.
const DefaultMetadataLimit = 4096

// MetadataLimit reads offset.metadata.max.bytes: the least of all brokers,
// because any may become the coordinator. Where it can't be read (it takes
// DESCRIBE_CONFIGS on the cluster) the default is returned, with the reason.
func (c *Cluster) MetadataLimit(ctx context.Context) (limit int, assumed error) {
	what := Subject{Doing: "read offset.metadata.max.bytes", Operation: "DESCRIBE_CONFIGS"}
	brokers, err := c.adm.ListBrokers(ctx)
	if err != nil {
		return DefaultMetadataLimit, Explain(err, what)
	}
	configs, err := c.adm.DescribeBrokerConfigs(ctx, brokers.NodeIDs()...)
	if err != nil {
		return DefaultMetadataLimit, Explain(err, what)
	}
	for _, r := range configs {
		if r.Err != nil {
			return DefaultMetadataLimit, Explain(r.Err, what)
		}
		for _, k := range r.Configs {
			if k.Key != "offset.metadata.max.bytes" || k.Value == nil {
				continue
			}
			n, err := strconv.Atoi(*k.Value)
			if err != nil || n < 0 {
				return DefaultMetadataLimit, fmt.Errorf("%s: broker %s says %q", what.Doing, r.Name, *k.Value)
			}
			if limit == 0 || n < limit {
				limit = n
			}
		}
	}
	if limit == 0 {
		return DefaultMetadataLimit, fmt.Errorf("%s: the brokers don't tell it", what.Doing)
	}
	return limit, nil
}
