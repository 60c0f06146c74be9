//go:build chaos

package e2e

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/testenv"
)

// schedule is one row of the table: faults of one kind, and the world that meets them.
type schedule struct {
	name     string
	design   design
	store    storeKind
	settings settings       // of each sink
	span     time.Duration  // over which the load is produced; 0: 16 s
	large    bool           // the long run: what costs the engine much is looked at less often
	alone    bool           // the schedule brings the sinks, the load's pace and the final judgement itself
	stops    string         // why a partition may stop by rule (I4); the way on that the sink names has to lead to the same end then. "": none may
	account  bool           // no process is killed, so what the sinks counted has to add up
	prepare  func(a *arena) // before the sinks start
	run      func(a *arena)
}

// schedules in the order of the table.
func schedules() []schedule {
	var all []schedule
	for _, of := range [][]schedule{processSchedules(), linkSchedules(), storeSchedules(), logSchedules(), tableSchedules()} {
		all = append(all, of...)
	}
	return all
}

// TestChaos runs the schedules against three `sink run` processes, each with servers of its own but for Kafka, prints the table and keeps it in docs/chaos.md.
//
//	ONCESINK_CHAOS_ONLY     names of schedules, or their beginnings, by comma; `mixed` is the long run of random faults
//	ONCESINK_CHAOS_ROWS     records of a schedule, duplicates included
//	ONCESINK_CHAOS_MINUTES  of the long run
//	ONCESINK_CHAOS_SEED     of the random moments and of the load
func TestChaos(t *testing.T) {
	only := os.Getenv("ONCESINK_CHAOS_ONLY")
	seed := uint64(size(t, "ONCESINK_CHAOS_SEED", int(rand.Uint32())))
	out := openReport(t, seed)
	b := startBroker(t)
	if only == "mixed" {
		runMixed(t, b, out, seed)
		return
	}
	met := 0
	for n, s := range schedules() {
		if !chosen(s.name, only) {
			continue
		}
		met++
		row := outcome{name: s.name}
		began := time.Now()
		t.Run(s.name, func(t *testing.T) {
			defer func() { row.seconds = time.Since(began).Seconds() }()
			s.play(t, b, &row, rand.New(rand.NewPCG(seed, uint64(n))), seed+uint64(n))
		})
		out.add(row)
	}
	if met == 0 {
		t.Fatalf("no schedule is named %q", only)
	}
	out.end()
}

func chosen(name, only string) bool {
	if only == "" {
		return true
	}
	for prefix := range strings.SplitSeq(only, ",") {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// play runs a schedule and judges its end.
func (s *schedule) play(t *testing.T, b *broker, row *outcome, rng *rand.Rand, seed uint64) {
	dir, err := os.MkdirTemp("", "oncesink-chaos-"+s.name+"-")
	if err != nil {
		t.Fatal(err)
	}
	a := newArena(t, s, b, dir, rng)
	defer func() {
		a.fill(row)
		if row.failed = t.Failed(); row.failed {
			row.dir = dir
			return
		}
		_ = os.RemoveAll(dir)
	}()
	rows := size(t, "ONCESINK_CHAOS_ROWS", 40_000)
	a.feed = a.produce(rows, seed)
	if s.prepare != nil {
		s.prepare(a)
	}
	if s.alone {
		s.run(a)
		return
	}
	a.seatAll()
	a.watch()
	a.pace(rows)
	s.run(a)
	a.finish()
}

// broker is the Kafka that all schedules share. It names a fault proxy as its address, so every connection of the sinks goes through the proxy, and the
// test's own go around it.
type broker struct {
	*testenv.KafkaServer
	link *faultproxy.Proxy
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	link, err := faultproxy.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	b := &broker{link: link}
	b.KafkaServer = testenv.Kafka(t, "advertised.listeners=PLAINTEXT://"+link.Addr(),
		"broker.session.timeout.ms=6000") // the cores are busy: a broker that is late for its own controller would be fenced
	link.SetTarget(b.Addr)
	return b
}

func (b *broker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == b.link.Addr() {
		addr = b.Addr
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}
