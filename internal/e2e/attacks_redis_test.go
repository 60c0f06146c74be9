//go:build chaos

package e2e

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func redisAttacks() []attack {
	return []attack{
		{name: "redis-flush-between-claim-and-insert", door: linkRedis, run: (*rig).flushBetween,
			what: "FLUSHALL when claimed, at the intent and in the insert of a frozen sink; copies in the partition of another one; thawed"},
		{name: "redis-old-dump-while-paused", door: linkRedis, rows: 2500, run: (*rig).oldDumpPaused,
			what: "sinks frozen, Redis killed and started from an older dump, thawed; everything sent again elsewhere"},
		{name: "redis-claim-lands-late", door: linkRedis, run: (*rig).claimLandsLate,
			what: "claims held in the network for 3 s, and past a FLUSHALL, and past the death of their sink"},
		{name: "redis-replies-swallowed-and-flush", door: linkRedis, rows: 3000, run: (*rig).repliesSwallowed,
			what: "every third answer of a script lost, every fifth call swallowed, FLUSHALL in between, copies elsewhere"},
		{name: "redis-failover-loses-writes", door: linkRedis, store: sentinel, rows: 3000, run: (*rig).failoverLoses,
			what: "the replica frozen, the master killed right behind claims, the replica promoted; everything sent again elsewhere"},
		{name: "redis-one-node-emptied", door: linkRedis, store: cluster, rows: 3000, run: (*rig).oneNodeEmptied,
			what: "one master of a cluster emptied under load, another one killed; everything sent again elsewhere"},
		{name: "redis-databases-swapped", door: linkRedis, rows: 2500, run: (*rig).databasesSwapped,
			what: "SWAPDB to an empty database and, rows later, back, the sinks running on"},
		{name: "redis-failed-over-and-back", door: linkRedis, rows: 2500, run: (*rig).failedBack,
			what: "the address leads to an empty server for a while, then back to the first one, which never restarted; the sinks running on"},
		{name: "redis-failed-over-and-back-restarted", door: linkRedis, rows: 2500, run: (*rig).failedBackRestarted,
			what: "the same, with other sinks each time"},
		{name: "redis-synced-with-an-old-copy", door: linkRedis, rows: 2500, run: (*rig).oldCopy,
			what: "REPLICAOF a server with an old copy and back to master, without a restart"},
		{name: "redis-full-in-mid-claim", door: linkRedis, rows: 2500, run: (*rig).fullInMidClaim,
			what: "maxmemory reached in mid-load, copies elsewhere, kill, room again"},
	}
}

func (r *rig) flushBetween() {
	for n, step := range []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting} {
		p, q := r.ready(with{settings: settings{rows: 300}}), r.ready(with{settings: settings{rows: 80}})
		time.Sleep(time.Second)
		r.feed.allow(600 * (n + 1))
		r.step(p, step)
		freeze(p)
		r.flush()
		r.awaitMade(600 * (n + 1))
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(1500 * time.Millisecond)
		thaw(p)
		r.count("zombies")
		r.inserted(r.truth().Keys)
		r.end(p)
		r.kill(q)
	}
}

// redisDir is where the server keeps its data.
func (r *rig) redisDir() string {
	switch v := r.arena.store.do(r.arena.store.node(), "CONFIG", "GET", "dir").(type) {
	case map[any]any:
		return fmt.Sprint(v["dir"])
	case []any:
		return fmt.Sprint(v[1])
	}
	return ""
}

func (r *rig) copyDir(from, to string) {
	r.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		r.t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) oldDumpPaused() {
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 70}})
	data, node := r.redisDir(), r.arena.store.node()
	for n := range 3 {
		r.make(300)
		r.quiet()
		time.Sleep(1100 * time.Millisecond) // the file is synced each second
		r.copyDir(data, data+".old")
		r.feed.allow(830 * (n + 1))
		r.step(p, []pipeline.Step{pipeline.StepClaimed, pipeline.StepInserting, pipeline.StepPublished}[n])
		freeze(p)
		freeze(q)
		node.Kill()
		r.copyDir(data+".old", data)
		node.Start()
		r.count("restarts from an old dump")
		r.again(r.topic, r.sent(), r.elsewhere)
		thaw(p)
		thaw(q)
	}
	r.quiet()
	r.end(p)
	r.end(q)
}

func (r *rig) claimLandsLate() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 150}})
		r.make(200)
		r.inserted(r.truth().Keys)
		rule := r.claims(faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Every: 3, Limit: 3})
		r.feed.allow(650 * (n + 1))
		r.met(rule)
		if n > 0 {
			r.flush()
		}
		if n == 2 {
			r.kill(p)
		}
		q := r.sink(with{settings: settings{rows: 60}})
		time.Sleep(3 * time.Second)
		r.again(r.topic, r.sent(), r.elsewhere)
		r.add("calls landed late", rule.Account().Faults)
		rule.Remove()
		r.inserted(r.truth().Keys)
		r.end(p)
		r.kill(q)
	}
}

func (r *rig) repliesSwallowed() {
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 80}})
	cut := r.claims(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3})
	lost := r.claims(faultproxy.RuleOptions{Fault: faultproxy.Swallow, Every: 5})
	for n := range 6 {
		r.feed.allow(500 * (n + 1))
		time.Sleep(1500 * time.Millisecond)
		if n%2 == 1 {
			r.flush()
		}
		r.again(r.topic, r.sent()[max(0, len(r.sent())-400):], r.elsewhere)
	}
	r.add("answers cut", cut.Account().Faults)
	r.add("calls swallowed", lost.Account().Faults)
	cut.Remove()
	lost.Remove()
	r.kill(p)
	r.end(q)
}

func (r *rig) failoverLoses() {
	s := r.arena.store.sentinels
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 80}})
	for n := range 2 {
		r.make(600)
		r.quiet()
		master := s.Master()
		replica := s.Nodes[0]
		if replica == master {
			replica = s.Nodes[1]
		}
		r.feed.allow(1500 * (n + 1))
		r.step(p, pipeline.StepClaimed)
		replica.Pause()
		time.Sleep(600 * time.Millisecond) // what is claimed now it doesn't get
		master.Kill()
		replica.Resume()
		r.count("masters killed")
		r.until(20*time.Second, func() bool { return s.Master() == replica })
		r.again(r.topic, r.sent(), r.elsewhere)
		master.Start()
		time.Sleep(3 * time.Second)
	}
	r.quiet()
	r.end(p)
	r.end(q)
}

func (r *rig) oneNodeEmptied() {
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 80}})
	for n := range 4 {
		r.feed.allow(750 * (n + 1))
		r.step(p, pipeline.StepInserting)
		node := r.arena.store.nodes[n%3]
		if n == 3 {
			node.Kill()
			time.Sleep(time.Second)
			node.Start()
			r.count("masters killed")
		} else {
			r.arena.store.do(node, "FLUSHALL")
			r.count("masters emptied")
		}
		r.awaitMade(750 * (n + 1))
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(1500 * time.Millisecond)
	}
	r.quiet()
	r.end(p)
	r.end(q)
}

func (r *rig) databasesSwapped() {
	p := r.ready(with{})
	node := r.arena.store.node()
	for n := range 4 {
		r.make(600)
		r.quiet()
		r.arena.store.do(node, "SWAPDB", 0, 1)
		r.count("SWAPDB")
		if n > 0 {
			r.again(r.topic, r.sent(), r.elsewhere)
		}
	}
	r.quiet()
	r.again(r.topic, r.sent(), r.elsewhere)
	r.quiet()
	r.end(p)
}

func (r *rig) failBack(restarted bool) {
	a, b := r.arena.store.node(), testenv.Redis(r.t)
	link := r.arena.store.link
	p := r.ready(with{})
	for n := range 4 {
		r.make(600)
		r.quiet()
		if restarted {
			r.end(p)
		}
		link.SetTarget([]*testenv.RedisServer{b, a}[n%2].Addr)
		link.Cut()
		r.count("other servers at the address")
		if n > 0 {
			r.again(r.topic, r.sent(), r.elsewhere)
		}
		if restarted {
			p = r.ready(with{settings: settings{rows: 90}})
		}
	}
	r.quiet()
	r.again(r.topic, r.sent(), r.elsewhere)
	r.quiet()
	r.end(p)
}

func (r *rig) failedBack()          { r.failBack(false) }
func (r *rig) failedBackRestarted() { r.failBack(true) }

func (r *rig) oldCopy() {
	node := r.arena.store.node()
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 80}})
	host, port := func() (string, string) {
		old := testenv.Redis(r.t)
		h, own, _ := strings.Cut(node.Addr, ":")
		r.make(800)
		r.quiet()
		r.arena.store.do(old, "REPLICAOF", h, own)
		r.until(10*time.Second, func() bool {
			return strings.Contains(fmt.Sprint(r.arena.store.do(old, "INFO", "replication")), "master_link_status:up")
		})
		r.arena.store.do(old, "REPLICAOF", "NO", "ONE")
		oh, op, _ := strings.Cut(old.Addr, ":")
		return oh, op
	}()
	r.make(800)
	r.quiet()
	r.feed.allow(2000)
	r.step(p, pipeline.StepClaimed)
	r.arena.store.do(node, "REPLICAOF", host, port)
	r.until(10*time.Second, func() bool {
		return strings.Contains(fmt.Sprint(r.arena.store.do(node, "INFO", "replication")), "master_link_status:up")
	})
	r.arena.store.do(node, "REPLICAOF", "NO", "ONE")
	r.count("synced with an old copy")
	r.awaitMade(2000)
	r.again(r.topic, r.sent(), r.elsewhere)
	r.quiet()
	r.end(p)
	r.end(q)
}

func (r *rig) fullInMidClaim() {
	node := r.arena.store.node()
	p := r.ready(with{})
	for n := range 3 {
		r.make(300)
		r.quiet()
		var used int
		if m := usedMemory.FindStringSubmatch(fmt.Sprint(r.arena.store.do(node, "INFO", "memory"))); m != nil {
			_, _ = fmt.Sscan(m[1], &used)
		}
		r.arena.store.do(node, "CONFIG", "SET", "maxmemory", used+5000*(n+1))
		r.count("times full")
		r.feed.allow(830 * (n + 1))
		r.awaitMade(min(830*(n+1), r.feed.rows))
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(1500 * time.Millisecond)
		if n == 1 {
			r.kill(p)
			p = r.sink(with{settings: settings{rows: 70}})
		}
		r.arena.store.do(node, "CONFIG", "SET", "maxmemory", 0)
	}
	r.quiet()
	r.end(p)
}
