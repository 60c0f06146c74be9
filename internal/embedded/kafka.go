package embedded

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaOptions say where and how the embedded Kafka runs.
type KafkaOptions struct {
	Port    int    // on loopback; 0: a free one
	DataDir string // topics, records, groups and producers' states; "": in memory only
	Output  io.Writer
	Extra   []kfake.Opt // for tests: ACLs, SASL, session timeouts, …
}

// Kafka is a one-broker Kafka in this process (kfake): the protocol of a real one, with the ordinary broker's defaults.
// What it keeps it keeps like a broker without forced fsync: across a kill of the process, not across a power cut.
type Kafka struct {
	Addr    string
	Cluster *kfake.Cluster // for what only tests do: faults, moved leaders, …
}

// StartKafka starts it and returns when it listens.
func StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	if o.Output == nil {
		o.Output = io.Discard
	}
	listen := kfake.NumBrokers(1) // it seeks a free port itself
	if o.Port != 0 {
		listen = kfake.Ports(o.Port)
	}
	opts := append([]kfake.Opt{
		listen,
		kfake.ClusterID(uuid.NewString()), // every Kafka is another cluster, until its data folder says which it was
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(1), // a broker's num.partitions
		kfake.BrokerConfigs(map[string]string{"offset.metadata.max.bytes": "4096"}), // a broker's default, which it doesn't tell by itself
		kfake.WithLogger(kfake.BasicLogger(o.Output, kfake.LogLevelWarn)),
	}, o.Extra...)
	if o.DataDir != "" {
		opts = append(opts, kfake.DataDir(o.DataDir))
		if err := layOutKafka(o.DataDir, opts); err != nil {
			return nil, fmt.Errorf("start Kafka in %s: %w", o.DataDir, err)
		}
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, fmt.Errorf("start Kafka on port %d (0: any free one): %w", o.Port, err)
	}
	if o.DataDir != "" {
		keepAutoCreatedTopics(cluster)
	}
	k := &Kafka{Addr: strings.Join(cluster.ListenAddrs(), ","), Cluster: cluster}
	if err := k.ping(ctx); err != nil {
		k.Stop()
		return nil, fmt.Errorf("start Kafka on %s: %w", k.Addr, err)
	}
	return k, nil
}

// layOutKafka makes a new data folder a valid one at once: kfake names the cluster in it only when it closes, and takes a folder without name for
// empty, so that a killed first run would lose all that it had written.
func layOutKafka(dir string, opts []kfake.Opt) error {
	if _, err := os.Stat(filepath.Join(dir, "meta.json")); !os.IsNotExist(err) {
		return err
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return err
	}
	cluster.Close()
	_, err = os.Stat(filepath.Join(dir, "meta.json"))
	return err
}

// keepAutoCreatedTopics creates topics before a metadata request would: kfake writes down at once what was created by name, but what a metadata request
// has created only when it closes, and a killed process would come back with the records of a topic that it doesn't know.
func keepAutoCreatedTopics(cluster *kfake.Cluster) {
	cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		metadata, ok := req.(*kmsg.MetadataRequest)
		if ok && metadata.AllowAutoTopicCreation && len(metadata.Topics) > 0 {
			// The cluster's methods must not be called on the goroutine that handles requests.
			cluster.SleepControl(func() {
				for _, t := range metadata.Topics {
					if t.Topic != nil && t.TopicID == [16]byte{} && cluster.TopicInfo(*t.Topic) == nil {
						// One that can't be created (its name) is answered as such by the request itself.
						_ = cluster.CreateTopic(*t.Topic, -1, nil)
					}
				}
			})
		}
		return nil, nil, false // go on as usual
	})
}

func (k *Kafka) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

// Stop closes all connections and, with a data folder, writes what is not there yet.
func (k *Kafka) Stop() { k.Cluster.Close() }
