package testenv

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/internal/embedded/child"
)

// KafkaServer is an Apache Kafka broker (KRaft, one node) of a test.
type KafkaServer struct {
	Server
	ClusterID string
}

// Kafka starts an Apache Kafka broker for this test alone. Settings are lines for its server.properties.
func Kafka(t testing.TB, settings ...string) *KafkaServer {
	t.Helper()
	b, err := newBroker(t.TempDir(), freePort(t), freePort(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	b.output = newOutput(t, "kafka")
	s := &KafkaServer{Server: Server{Addr: b.addr, name: "kafka", t: t, start: b.start}, ClusterID: b.clusterID}
	s.launch()
	return s
}

// broker is what it takes to start an Apache Kafka again and again on the same data.
type broker struct {
	dir, java, classPath, config string
	addr, clusterID              string
	formatted                    bool
	output                       interface{ Write([]byte) (int, error) }
}

func newBroker(dir string, port, controllerPort int, settings []string) (*broker, error) {
	stamp := embedded.FindCached("kafka/.stamp")
	if stamp == "" {
		return nil, errors.New("no Apache Kafka was found in .cache: " + setupHint)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("no java was found on PATH, and Kafka needs one of version 17 or later (Debian: apt-get install openjdk-17-jre-headless): %w", err)
	}
	// A cluster id is a UUID in Kafka's own spelling: unpadded base64url.
	id := uuid.New()
	b := &broker{
		dir: dir, java: java, classPath: filepath.Join(filepath.Dir(stamp), "libs", "*"), config: filepath.Join(dir, "server.properties"),
		addr: loopback(port), clusterID: base64.RawURLEncoding.EncodeToString(id[:]),
	}
	properties := append([]string{
		"process.roles=broker,controller", "node.id=1",
		fmt.Sprintf("controller.quorum.voters=1@%s", loopback(controllerPort)),
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://%s", b.addr, loopback(controllerPort)),
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + filepath.Join(dir, "data"),
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000",
		"broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=200", // a killed broker may come back after that time
	}, settings...)
	return b, os.WriteFile(b.config, []byte(strings.Join(properties, "\n")+"\n"), 0o600)
}

// command is java with what makes a short-lived JVM start fast.
func (b *broker) command(class string, args ...string) []string {
	log4j := filepath.Join(filepath.Dir(filepath.Dir(b.classPath)), "log4j2.properties")
	return append([]string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dlog4j2.configurationFile=" + log4j, "-cp", b.classPath, class,
	}, args...)
}

func (b *broker) start(ctx context.Context) (process, error) {
	if !b.formatted {
		format := exec.CommandContext(ctx, b.java, b.command("kafka.tools.StorageTool", "format", "--cluster-id="+b.clusterID, "--config", b.config)...)
		if said, err := format.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("format Kafka's storage in %s: %w: %s", b.dir, err, said)
		}
		b.formatted = true
	}
	proc, err := child.Start(child.Options{Name: "kafka", Path: b.java, Args: b.command("kafka.Kafka", b.config), Dir: b.dir, Output: b.output})
	if err != nil {
		return nil, err
	}
	if err := b.waitReady(ctx, proc); err != nil {
		proc.Kill()
		return nil, fmt.Errorf("start Kafka on %s: %w", b.addr, err)
	}
	return proc, nil
}

// waitReady returns when the broker is registered in its own cluster.
func (b *broker) waitReady(ctx context.Context, proc *child.Process) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RetryTimeout(time.Second), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
		if err == nil && resp.ClusterID != nil && *resp.ClusterID != b.clusterID {
			return fmt.Errorf("cluster %s answers instead of %s", *resp.ClusterID, b.clusterID)
		}
		if err == nil && len(resp.Brokers) == 1 {
			return nil
		}
		select {
		case <-proc.Exited():
			return proc.Failure()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (last: %w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// KFakeServer is an in-process Kafka: for tests that need its faults or its speed rather than the real broker.
type KFakeServer struct {
	Addr    string
	Cluster *kfake.Cluster
}

// KFake starts it for this test alone, in memory.
func KFake(t testing.TB, opts ...kfake.Opt) *KFakeServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	k, err := embedded.StartKafka(ctx, embedded.KafkaOptions{Extra: opts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	return &KFakeServer{Addr: k.Addr, Cluster: k.Cluster}
}
