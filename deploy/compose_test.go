// Package deploy has no code: it tests the files that people deploy with.
package deploy

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/oncesink/oncesink/internal/config"
)

const root = ".."

func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithWorkingDirectory(root))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context()) // strict: an unknown key or a service that isn't there fails here
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sinkConfig is the configuration that the sink of the compose file gets, with the environment that it gets.
func sinkConfig(t *testing.T, p *types.Project) *config.Config {
	t.Helper()
	s := p.Services["sink"]
	i := slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == "/etc/sink/sink.yaml" })
	if i < 0 {
		t.Fatal("the sink gets no configuration")
	}
	c, err := config.Load(s.Volumes[i].Source, func(name string) (string, bool) {
		value, ok := s.Environment[name]
		if !ok || value == nil {
			return "", false
		}
		return *value, true
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var pinnedImage = regexp.MustCompile(`^[a-z0-9/-]+:\d+\.\d+(\.\d+)*(-[a-z0-9.]+)?$`)

func TestAllServicesAreThereAndAnImageOfTomorrowIsTheSame(t *testing.T) {
	p := project(t)
	got := p.ServiceNames()
	slices.Sort(got)
	if want := "clickhouse-1 clickhouse-2 clickhouse-3 kafka keeper redis sink tables topics"; strings.Join(got, " ") != want {
		t.Errorf("services %v, want %s", got, want)
	}
	for name, s := range p.Services {
		if s.Build == nil && !pinnedImage.MatchString(s.Image) {
			t.Errorf("%s: image %q has no exact version", name, s.Image)
		}
	}
	replica := p.Services["clickhouse-1"].Image
	for _, name := range []string{"clickhouse-2", "clickhouse-3", "keeper", "tables"} {
		if p.Services[name].Image != replica {
			t.Errorf("%s has another version than clickhouse-1", name)
		}
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(string(dockerfile), -1) {
		if m[1] != "scratch" && !pinnedImage.MatchString(m[1]) {
			t.Errorf("Dockerfile: image %q has no exact version", m[1])
		}
	}
	if text := string(dockerfile); !regexp.MustCompile(`(?m)^USER [1-9]\d*:[1-9]\d*$`).MatchString(text) || strings.LastIndex(text, "USER") < strings.LastIndex(text, "FROM") {
		t.Error("Dockerfile: the last stage runs as root")
	}
}

// A sink that starts before its tables exist would be refused, or wait for nothing.
func TestEveryServiceWaitsForWhatItNeedsAndEachServerTellsWhenItIsReady(t *testing.T) {
	p := project(t)
	oneShot := []string{"topics", "tables"}
	for name, s := range p.Services {
		once := slices.Contains(oneShot, name)
		if once != (s.HealthCheck == nil) {
			t.Errorf("%s: health check %v", name, s.HealthCheck)
		}
		if s.HealthCheck != nil && (len(s.HealthCheck.Test) < 2 || s.HealthCheck.Interval == nil || s.HealthCheck.Timeout == nil || s.HealthCheck.Retries == nil) {
			t.Errorf("%s: half a health check", name)
		}
		for on, d := range s.DependsOn {
			want := types.ServiceConditionHealthy
			if slices.Contains(oneShot, on) {
				want = types.ServiceConditionCompletedSuccessfully
			}
			if d.Condition != want {
				t.Errorf("%s waits for %s to be %s, want %s", name, on, d.Condition, want)
			}
		}
	}
	for name, needs := range map[string]string{
		"topics": "kafka", "clickhouse-1": "keeper", "clickhouse-2": "keeper", "clickhouse-3": "keeper",
		"tables": "clickhouse-1 clickhouse-2 clickhouse-3", "sink": "redis tables topics",
	} {
		got := p.Services[name].GetDependencies()
		slices.Sort(got)
		if strings.Join(got, " ") != needs {
			t.Errorf("%s waits for %v, want %s", name, got, needs)
		}
	}
}

func TestEveryMountedFileExistsEveryVolumeIsDeclaredAndNoPortIsTakenTwice(t *testing.T) {
	p := project(t)
	taken := map[string]string{}
	mounted := map[string]string{}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeBind:
				if info, err := os.Stat(v.Source); err != nil || !info.Mode().IsRegular() || !v.ReadOnly {
					t.Errorf("%s mounts %s: %v, read-only %v", name, v.Source, err, v.ReadOnly)
				}
			case types.VolumeTypeVolume:
				if _, ok := p.Volumes[v.Source]; !ok {
					t.Errorf("%s: volume %s is not declared", name, v.Source)
				}
				if other, twice := mounted[v.Source]; twice {
					t.Errorf("%s and %s share the volume %s", name, other, v.Source)
				}
				mounted[v.Source] = name
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the whole network, without a password worth the name", name, port.Published)
			}
			if other, twice := taken[port.Published]; twice {
				t.Errorf("%s and %s publish port %s", name, other, port.Published)
			}
			taken[port.Published] = name
		}
	}
	if len(mounted) != len(p.Volumes) {
		t.Errorf("%d volumes are declared, %d are used", len(p.Volumes), len(mounted))
	}
}

// cluster is what matters of cluster.xml.
type cluster struct {
	Macros struct {
		Shard   string `xml:"shard"`
		Replica struct {
			FromEnv string `xml:"from_env,attr"`
		} `xml:"replica"`
	} `xml:"macros"`
	Keeper []struct {
		Host string `xml:"host"`
		Port string `xml:"port"`
	} `xml:"zookeeper>node"`
	Clusters struct {
		Each []struct {
			XMLName xml.Name
			Shards  []struct {
				InternalReplication bool `xml:"internal_replication"`
				Replicas            []struct {
					Host string `xml:"host"`
					Port string `xml:"port"`
				} `xml:"replica"`
			} `xml:"shard"`
		} `xml:",any"`
	} `xml:"remote_servers"`
}

func TestTheClusterIsOneShardOfThreeReplicasThatAllHaveANameOfTheirOwn(t *testing.T) {
	p := project(t)
	var c cluster
	read(t, "compose/clickhouse/cluster.xml", &c)
	if len(c.Clusters.Each) != 1 || len(c.Clusters.Each[0].Shards) != 1 || len(c.Clusters.Each[0].Shards[0].Replicas) != 3 || !c.Clusters.Each[0].Shards[0].InternalReplication {
		t.Fatalf("%+v", c.Clusters)
	}
	if c.Macros.Shard != "1" || c.Macros.Replica.FromEnv != "CLICKHOUSE_REPLICA" {
		t.Errorf("macros %+v", c.Macros)
	}
	seen := map[string]bool{}
	for _, r := range c.Clusters.Each[0].Shards[0].Replicas {
		s, ok := p.Services[r.Host]
		if !ok || r.Port != "9000" || seen[r.Host] {
			t.Errorf("replica %s:%s", r.Host, r.Port)
			continue
		}
		seen[r.Host] = true
		if name := s.Environment["CLICKHOUSE_REPLICA"]; name == nil || *name != r.Host || s.Hostname != r.Host {
			t.Errorf("%s: replica name and host name differ from its service", r.Host)
		}
		if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Target == "/etc/clickhouse-server/config.d/cluster.xml"
		}) {
			t.Errorf("%s doesn't get the cluster's configuration", r.Host)
		}
	}
	var keeper struct {
		Port string `xml:"keeper_server>tcp_port"`
		Raft []struct {
			Host string `xml:"hostname"`
		} `xml:"keeper_server>raft_configuration>server"`
	}
	read(t, "compose/keeper/keeper.xml", &keeper)
	if len(c.Keeper) != 1 || c.Keeper[0].Host != "keeper" || c.Keeper[0].Port != keeper.Port || len(keeper.Raft) != 1 || keeper.Raft[0].Host != p.Services["keeper"].Hostname {
		t.Errorf("the replicas look for their Keeper at %+v, it is %+v", c.Keeper, keeper)
	}
	sql, err := os.ReadFile("compose/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	name := c.Clusters.Each[0].XMLName.Local
	if n := strings.Count(string(sql), "\nCREATE "); n != 3 || strings.Count(string(sql), " ON CLUSTER "+name) != n {
		t.Errorf("not every one of %d tables is made on the cluster %s: each replica would give it a UUID of its own", n, name)
	}
}

// read parses a whole XML file: one that is cut or has an unclosed tag fails.
func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if err := xml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// listens are the ports on which the services answer inside.
func listens(t *testing.T, p *types.Project) map[string]string {
	t.Helper()
	at := map[string]string{"redis": "6379", "clickhouse-1": "9000", "clickhouse-2": "9000", "clickhouse-3": "9000"}
	advertised := p.Services["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"]
	if advertised == nil {
		t.Fatal("Kafka advertises nothing")
	}
	for _, listener := range strings.Split(*advertised, ",") {
		if inside, ok := strings.CutPrefix(listener, "INSIDE://"); ok {
			host, port, err := net.SplitHostPort(inside)
			if err != nil {
				t.Fatal(err)
			}
			at[host] = port
		}
	}
	return at
}

func TestTheSinkLooksForTheServersWhereTheyAre(t *testing.T) {
	p := project(t)
	c := sinkConfig(t, p)
	at := listens(t, p)
	for _, address := range slices.Concat(c.Kafka.Brokers, c.ClickHouse.Addresses, c.Redis.Addresses) {
		host, port, err := net.SplitHostPort(address)
		if err != nil || at[host] != port {
			t.Errorf("the sink looks for %s, the service listens on %q", address, at[host])
		}
	}
	if len(c.ClickHouse.Addresses) != 3 {
		t.Errorf("the sink knows %d replicas", len(c.ClickHouse.Addresses))
	}
	for _, name := range []string{"clickhouse-1", "clickhouse-2", "clickhouse-3"} {
		env := p.Services[name].Environment
		password, err := c.ClickHouse.Password.Reveal()
		if err != nil || *env["CLICKHOUSE_USER"] != c.ClickHouse.Username || *env["CLICKHOUSE_PASSWORD"] != password {
			t.Errorf("%s: the sink's user or password is another", name)
		}
	}
	_, port, err := net.SplitHostPort(c.HTTP.Listen)
	if err != nil || !slices.ContainsFunc(p.Services["sink"].Ports, func(pc types.ServicePortConfig) bool { return fmt.Sprint(pc.Target) == port }) {
		t.Errorf("the status page on %s is not published", c.HTTP.Listen)
	}
	topics := strings.Join(p.Services["topics"].Command, " ")
	for _, r := range c.Routes {
		for _, topic := range append(slices.Clone(r.Topics), r.DeadLetter) {
			if !strings.Contains(topics, topic) {
				t.Errorf("topic %s is not made", topic)
			}
		}
	}
	redis := strings.Join(p.Services["redis"].Command, " ")
	if !strings.Contains(redis, "--maxmemory-policy noeviction") || !strings.Contains(redis, "--appendonly yes") {
		t.Errorf("Redis may forget keys: %s", redis)
	}
}

// The example that people start from must load, and mean what the compose file's route means.
func TestTheExampleIsTheComposeRouteAtTheDevServersPorts(t *testing.T) {
	p := project(t)
	example, err := config.Load(filepath.Join(root, "examples", "settlements.yaml"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	compose := sinkConfig(t, p)
	if len(example.Routes) != 1 || len(compose.Routes) != 1 {
		t.Fatal("one route each")
	}
	a, b := fmt.Sprintf("%+v", example.Routes[0]), fmt.Sprintf("%+v", compose.Routes[0])
	if a != b {
		t.Errorf("example %s\ncompose %s", a, b)
	}
	for _, got := range [][2]string{{example.Kafka.Brokers[0], "localhost:9092"}, {example.ClickHouse.Addresses[0], "localhost:9000"}, {example.Redis.Addresses[0], "localhost:6379"}} {
		if got[0] != got[1] {
			t.Errorf("the example looks for %s, sink dev is at %s", got[0], got[1])
		}
	}
	columns := regexp.MustCompile(`(?m)^    ([a-z_]+) +[A-Z]`)
	named := func(file string) string {
		sql, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range columns.FindAllStringSubmatch(string(sql), -1) {
			names = append(names, m[1])
		}
		return strings.Join(names, " ")
	}
	single, replicated := named(filepath.Join(root, "examples", "settlements.sql")), named("compose/tables.sql")
	if single != replicated || !strings.HasPrefix(single, "settle_ms id rev tenant amount qty currency create_time ") {
		t.Errorf("columns of the example %q, of the compose file %q", single, replicated)
	}
}
