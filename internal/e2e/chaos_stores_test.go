//go:build chaos

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/testenv"
)

func storeSchedules() []schedule {
	return []schedule{
		{name: "redis-flushall", account: true, run: (*arena).flushes},
		{name: "redis-old-dump", account: true, span: 20 * time.Second, run: (*arena).oldDumps},
		{name: "redis-script-flush", account: true, run: (*arena).scriptFlushes},
		{name: "redis-full", account: true, span: 20 * time.Second, run: (*arena).fullRedis},
		{name: "redis-sentinel-failover", account: true, store: sentinel, span: 40 * time.Second, run: (*arena).failovers},
		{name: "redis-cluster-master-killed", account: true, store: cluster, span: 24 * time.Second, run: (*arena).masterKilled},
		{name: "redis-cluster-reshard", account: true, store: cluster, span: 24 * time.Second, run: (*arena).reshard},
	}
}

// flushes: everything that Redis knew is gone, again and again.
func (a *arena) flushes() {
	for a.feeding(a.between(2*time.Second, 4*time.Second)) {
		a.store.do(a.store.node(), "FLUSHALL")
		a.count("FLUSHALL")
	}
}

// oldDumps: Redis is killed and comes back with what it knew some seconds ago.
func (a *arena) oldDumps() {
	node := a.store.node()
	dir := a.store.do(node, "CONFIG", "GET", "dir")
	data := ""
	switch v := dir.(type) {
	case map[any]any:
		data = fmt.Sprint(v["dir"])
	case []any:
		data = fmt.Sprint(v[1])
	}
	copyTo := func(from, to string) {
		if err := os.RemoveAll(to); err != nil {
			a.t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			a.t.Fatal(err)
		}
	}
	for a.feeding(a.between(time.Second, 2*time.Second)) {
		copyTo(data, data+".old")
		if !a.feeding(a.between(2*time.Second, 4*time.Second)) {
			return
		}
		node.Kill()
		copyTo(data+".old", data)
		node.Start()
		a.count("restarts from an old dump")
	}
}

// scriptFlushes: the scripts that the sinks call by digest are gone.
func (a *arena) scriptFlushes() {
	for a.feeding(a.between(50*time.Millisecond, 200*time.Millisecond)) {
		a.store.do(a.store.node(), "SCRIPT", "FLUSH")
		a.count("SCRIPT FLUSH")
	}
}

var usedMemory = regexp.MustCompile(`used_memory:(\d+)`)

// fullRedis: Redis has no room for another key until somebody gives it more.
func (a *arena) fullRedis() {
	node := a.store.node()
	for a.feeding(a.between(time.Second, 3*time.Second)) {
		used, err := strconv.Atoi(usedMemory.FindStringSubmatch(fmt.Sprint(a.store.do(node, "INFO", "memory")))[1])
		if err != nil {
			a.t.Fatal(err)
		}
		a.store.do(node, "CONFIG", "SET", "maxmemory", used+a.rng.IntN(100_000))
		a.feeding(a.between(2*time.Second, 4*time.Second))
		a.store.do(node, "CONFIG", "SET", "maxmemory", 0)
		a.count("times full")
	}
}

// failovers: the sentinels make the replica the master, on demand and because the master was killed. It comes back as a replica.
func (a *arena) failovers() {
	s := a.store.sentinels
	for n := 0; a.feeding(a.between(2*time.Second, 3*time.Second)); n++ {
		master := s.Master()
		if n%2 == 0 {
			asked := &testenv.RedisServer{Server: testenv.Server{Addr: s.Addrs[0]}}
			if _, err := a.store.ask(asked, "SENTINEL", "FAILOVER", s.Name); err == nil {
				a.count("failovers on demand")
			}
		} else {
			master.Kill()
			a.count("masters killed")
		}
		for until := time.Now().Add(20 * time.Second); s.Master() == master && time.Now().Before(until); {
			time.Sleep(200 * time.Millisecond)
		}
		if s.Master() == master {
			a.note("the sentinels kept master %s", master.Addr)
		}
		if n%2 == 1 {
			master.Start()
		}
		// The next failover needs a replica that follows.
		a.feeding(4 * time.Second)
	}
}

// masterKilled: one of three masters is away for a while.
func (a *arena) masterKilled() {
	for a.feeding(a.between(2*time.Second, 3*time.Second)) {
		node := a.store.nodes[a.rng.IntN(len(a.store.nodes))]
		node.Kill()
		a.count("masters killed")
		time.Sleep(a.between(time.Second, 4*time.Second))
		node.Start()
	}
}

// reshard: slots with their keys move from one master to another while claims go on.
func (a *arena) reshard() {
	ids := map[*testenv.RedisServer]string{}
	for _, n := range a.store.nodes {
		ids[n] = fmt.Sprint(a.store.do(n, "CLUSTER", "MYID"))
	}
	owner := func(slot int) *testenv.RedisServer { // as RedisCluster gave them
		return a.store.nodes[min(slot*len(a.store.nodes)/16384, len(a.store.nodes)-1)]
	}
	moved := map[int]*testenv.RedisServer{}
	used := a.usedSlots()
	for len(used) == 0 && a.feeding(200*time.Millisecond) {
		used = a.usedSlots()
	}
	for n := 0; a.feeding(20 * time.Millisecond); n++ {
		slot := a.rng.IntN(16384)
		if n%4 == 0 && len(used) > 0 {
			slot = used[a.rng.IntN(len(used))] // most slots are empty, and moving those proves nothing
		}
		from := moved[slot]
		if from == nil {
			from = owner(slot)
		}
		to := a.store.nodes[a.rng.IntN(len(a.store.nodes))]
		if to == from {
			continue
		}
		if keys := a.moveSlot(slot, from, to, ids); keys > 0 {
			a.add("keys moved", keys)
		}
		moved[slot] = to
		a.count("slots moved")
	}
}

// usedSlots are the slots that hold keys.
func (a *arena) usedSlots() (out []int) {
	seen := map[int]bool{}
	for _, n := range a.store.nodes {
		keys, _ := a.store.do(n, "KEYS", "*").([]any)
		for _, k := range keys {
			slot, err := strconv.Atoi(fmt.Sprint(a.store.do(n, "CLUSTER", "KEYSLOT", k)))
			if err == nil && !seen[slot] {
				seen[slot] = true
				out = append(out, slot)
			}
		}
	}
	return out
}

// moveSlot is what `redis-cli --cluster reshard` does for one slot.
func (a *arena) moveSlot(slot int, from, to *testenv.RedisServer, ids map[*testenv.RedisServer]string) (moved int) {
	a.t.Helper()
	a.store.do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from])
	a.store.do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to])
	host, port, _ := strings.Cut(to.Addr, ":")
	for {
		keys, _ := a.store.do(from, "CLUSTER", "GETKEYSINSLOT", slot, 10).([]any)
		if len(keys) == 0 {
			break
		}
		a.store.do(from, append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, keys...)...)
		moved += len(keys)
	}
	for _, n := range []*testenv.RedisServer{to, from} {
		a.store.do(n, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
	}
	for _, n := range a.store.nodes {
		if n != to && n != from {
			a.store.do(n, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
		}
	}
	return moved
}
