//go:build chaos

package e2e

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/testenv"
)

// arena is a world with three sinks in one group, a fault proxy on each link, and a supervisor.
type arena struct {
	*world
	schedule *schedule
	rng      *rand.Rand
	broker   *broker
	engine   *testenv.EngineServer
	store    *store
	toKafka  *faultproxy.Proxy
	toEngine *faultproxy.Proxy
	feed     *feed
	fed      chan struct{} // closed when the whole load may be made

	mu    sync.Mutex // the seats, w.lives and the counts below
	seats []*seat
	did   tallyOf // faults
	notes []string
	exits []string
	stops int
	seen  samples
	halt  []func() // ends the goroutines of the arena, newest first

	lost, doubled int64
}

// seat is a place that a sink runs in. A process that ends by itself is started again, as an orchestrator would.
type seat struct {
	n       int
	wanted  bool
	process *sink
	ended   time.Time
	listen  string // of HTTP, where it is asked
}

func newArena(t *testing.T, s *schedule, b *broker, dir string, rng *rand.Rand) *arena {
	t.Helper()
	a := &arena{schedule: s, rng: rng, broker: b, toKafka: b.link, fed: make(chan struct{}), did: tallyOf{}}
	a.engine = testenv.Engine(t)
	a.store = startStore(t, s.store)
	d := s.design
	if d.partitions == 0 {
		d.partitions = 8
	}
	d.report = true
	a.world = newWorld(t, &stack{
		kafka: b.link.Addr(), dial: b.dial, engine: a.engine.Addr, engineHTTP: a.engine.HTTPAddr, database: a.engine.Database,
	}, d)
	a.dir = dir
	engineVersion = a.s.sql(t, "SELECT version()")
	a.toEngine = a.proxyTo(a.engine.Addr)
	if a.store.kind == standalone {
		a.store.link = a.proxyTo(a.store.node().Addr)
	}
	t.Cleanup(func() {
		for i := len(a.halt) - 1; i >= 0; i-- {
			a.halt[i]()
		}
		a.heal()
	})
	return a
}

func (a *arena) proxyTo(addr string) *faultproxy.Proxy {
	p, err := faultproxy.Listen(addr)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(p.Close)
	return p
}

// heal ends every fault of the links.
func (a *arena) heal() {
	for _, p := range []*faultproxy.Proxy{a.toKafka, a.toEngine, a.store.link} {
		if p == nil {
			continue
		}
		for _, d := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
			p.Stall(d, false)
			p.BlackHole(d, false)
			p.Delay(d, 0)
			p.CutAfter(d, 0)
		}
		p.Refuse(false)
	}
}

// background runs f again and again until the arena ends; f returns how long to wait.
func (a *arena) background(f func() time.Duration) (stop func()) {
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			t := time.NewTimer(f())
			select {
			case <-quit:
				t.Stop()
				return
			case <-t.C:
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(quit)
		running.Wait()
	})
	a.halt = append(a.halt, stop)
	return stop
}

// seatAll starts the three sinks and their supervisor.
func (a *arena) seatAll() {
	for n := range 3 {
		a.seats = append(a.seats, &seat{n: n})
	}
	for _, s := range a.seats {
		a.seat(s)
	}
	a.awaitConsuming()
	a.background(func() time.Duration {
		a.supervise()
		return 100 * time.Millisecond
	})
}

// awaitConsuming waits until the sinks have looked at their servers and begin: the faults are for what comes then.
func (a *arena) awaitConsuming() {
	a.t.Helper()
	for _, s := range a.seats {
		for deadline := time.Now().Add(time.Minute); !strings.Contains(s.process.said(1000), "msg=consuming"); time.Sleep(50 * time.Millisecond) {
			if !s.process.running() || time.Now().After(deadline) {
				a.t.Fatalf("%s did not begin: %s", s.process.name, s.process.said(5))
			}
		}
	}
}

func (a *arena) supervise() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seats {
		switch {
		case !s.wanted || s.process.running():
		case s.ended.IsZero():
			s.ended = time.Now()
			a.exits = append(a.exits, fmt.Sprintf("%s with %d: %s", s.process.name, s.process.code, s.process.said(1)))
		case time.Since(s.ended) > time.Second:
			a.launchIn(s)
		}
	}
}

func (a *arena) launchIn(s *seat) {
	c := a.schedule.settings
	if c.member == "" {
		c.member = fmt.Sprintf("seat-%d", s.n)
	}
	if c.session == 0 {
		c.session = 3 * time.Second
	}
	if c.rows == 0 {
		c.rows = 500
	}
	c.redis = a.store.settings()
	c.clickhouse = a.toEngine.Addr()
	if a.schedule.large {
		port, err := embedded.FreePort()
		if err != nil {
			a.t.Error(err)
		}
		s.listen = fmt.Sprintf("127.0.0.1:%d", port)
		c.listen = s.listen
	}
	s.process, s.wanted, s.ended = a.start(c), true, time.Time{}
}

// seat starts a sink in a place; unseat gives it up with a signal and waits until it has gone.
func (a *arena) seat(s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.launchIn(s)
}

func (a *arena) unseat(s *seat, signal syscall.Signal) {
	a.mu.Lock()
	s.wanted = false
	p := s.process
	a.mu.Unlock()
	if p.running() {
		_ = p.cmd.Process.Signal(signal)
	}
	p.wait(60 * time.Second)
}

// sinkIn is the process in a place.
func (a *arena) sinkIn(s *seat) *sink {
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.process
}

func (a *arena) anySeat() *seat { return a.seats[a.rng.IntN(len(a.seats))] }

// pace has the load made evenly over the schedule's span.
func (a *arena) pace(rows int) {
	span := a.schedule.span
	if span == 0 {
		span = 16 * time.Second
	}
	began := time.Now()
	done := false
	a.background(func() time.Duration {
		part := min(1, time.Since(began).Seconds()/span.Seconds())
		a.feed.allow(max(1, int(part*float64(rows))))
		if part == 1 && !done {
			done = true
			close(a.fed)
		}
		return 50 * time.Millisecond
	})
}

// feeding tells whether the load is still being made, after a pause.
func (a *arena) feeding(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-a.fed:
		return false
	case <-t.C:
		return true
	}
}

// between is a random time from a to b.
func (a *arena) between(from, to time.Duration) time.Duration {
	return from + time.Duration(a.rng.Int64N(int64(to-from)))
}

// count notes a fault.
func (a *arena) count(fault string) { a.add(fault, 1) }

func (a *arena) add(fault string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.did[fault] += n
}

func (a *arena) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// finish ends the faults, has everything settled, and judges.
func (a *arena) finish() {
	a.t.Helper()
	a.heal()
	truth := a.feed.all()
	a.settleAll()
	account := a.stopAll()
	a.drainAll()
	a.watched()
	a.verify(truth)
	a.tellDifference(truth.Keys)
	if a.schedule.account {
		a.balance(account, truth.Keys)
	}
}

// standing is how long nothing moves before partitions that stopped are taken for the reason.
const standing = 20 * time.Second

// settleAll waits until everything is committed, or nothing moves any more because partitions stopped.
func (a *arena) settleAll() {
	a.t.Helper()
	before, since := int64(-1), time.Now()
	for ; ; time.Sleep(100 * time.Millisecond) {
		open, moved := int64(0), int64(0)
		for _, o := range a.offsets() {
			open += o.end - o.committed
			moved += o.committed
		}
		switch {
		case open == 0:
			return
		case moved != before:
			before, since = moved, time.Now()
		case time.Since(since) > standing && a.stopped() != "":
			return
		case time.Since(since) > stalls:
			a.t.Errorf("nothing moved for %s; the offsets are %v", stalls, a.offsets())
			for _, s := range a.seats {
				if p := a.sinkIn(s); p.running() {
					_ = p.cmd.Process.Signal(syscall.SIGQUIT)
				}
			}
			time.Sleep(time.Second)
			a.t.FailNow()
		}
	}
}

// stopped is what a running sink says of a partition that stopped.
func (a *arena) stopped() string {
	for _, s := range a.seats {
		if line := stopLine(a.sinkIn(s).said(10_000)); line != "" {
			return line
		}
	}
	return ""
}

// stopAll ends the sinks in good order and sums their accounts.
func (a *arena) stopAll() account {
	a.t.Helper()
	var sum account
	for _, s := range a.seats {
		a.unseat(s, syscall.SIGTERM)
		p := a.sinkIn(s)
		if p.code != 0 && (p.code != 3 || stopLine(p.said(10_000)) == "") {
			a.t.Errorf("%s stopped with %d, want 0: %s", p.name, p.code, p.said(3))
		}
		sum.add(p.said(10_000))
	}
	return sum
}

// drainAll drains what is left, by the way on that a partition names when it stopped.
func (a *arena) drainAll() {
	a.t.Helper()
	const rounds = 4
	c := settings{redis: a.store.settings(), member: "-", session: 3 * time.Second}
	for round := 0; ; round++ {
		code, _, stderr := a.drain(c)
		if code == 0 {
			return
		}
		ways := waysOn(stderr)
		if code != 3 || len(ways) == 0 || round == rounds {
			a.t.Fatalf("the drain ended with %d, want 0:\n%s", code, stderr)
		}
		if a.schedule.stops == "" {
			a.t.Errorf("a partition stopped, and by the rules none had to: %s", stopLine(stderr))
		}
		a.recompute()
		for _, way := range ways {
			a.resolveBy(way, c)
		}
	}
}

func (a *arena) resolveBy(way []string, c settings) {
	a.t.Helper()
	args := append([]string{"offsets", "resolve", "-c", a.config(c)}, way...)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		code, stdout, stderr := a.command(args...)
		if code == 0 {
			a.stops++
			a.note("resolved: %s", strings.Join(way, " "))
			return
		}
		if strings.Contains(stderr, "not committed yet") {
			a.note("not yet: %s", strings.Join(way, " "))
			return
		}
		if !strings.Contains(stderr, "live member") || time.Now().After(deadline) {
			a.t.Fatalf("%q ended with %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// tellDifference puts what is missing and what is too much into the table.
func (a *arena) tellDifference(keys int64) {
	table, err := a.inTable()
	if err != nil {
		a.t.Error(err)
		return
	}
	a.lost, a.doubled = keys-table.keys, table.rows-table.keys
}

// account is what sinks counted.
type account struct{ consumed, inserted, duplicates, conflicts, letters, filtered int64 }

var accountLine = regexp.MustCompile(`consumed (\d+) = inserted (\d+) \+ duplicates (\d+) \+ conflicts (\d+) \+ dead letters (\d+) \+ filtered (\d+)`)

func (c *account) add(log string) {
	m := accountLine.FindStringSubmatch(log)
	if m == nil {
		return
	}
	for i, to := range []*int64{&c.consumed, &c.inserted, &c.duplicates, &c.conflicts, &c.letters, &c.filtered} {
		var n int64
		_, _ = fmt.Sscan(m[i+1], &n)
		*to += n
	}
}

// balance holds the account of sinks that were never killed against what was produced.
func (a *arena) balance(c account, keys int64) {
	a.t.Helper()
	made := int64(a.feed.gen.Made())
	if len(a.exits) > 0 || a.stops > 0 {
		return // a process that ended by itself took its account along, and one that was stopped left the rest to the drain
	}
	want := account{consumed: made, inserted: keys, duplicates: made - keys}
	if c != want {
		a.t.Errorf("the sinks' account is %+v, want %+v", c, want)
	}
}

// end cuts the load short: nothing more is made.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = f.gen.Made()
	f.upTo = f.rows
	f.more.Broadcast()
}
