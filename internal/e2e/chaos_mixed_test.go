//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
)

// The long run: faults of all kinds by chance, at the highest rate that the machine carries, with an eye on what two sinks need that are never killed.
const (
	mixedRows    = 1 << 30 // more than any run makes; the clock ends it
	mixedBacklog = 50_000  // records that may wait: more is no higher rate
	warmUp       = 5 * time.Minute
	mostSlope    = 1.0 // MB a minute
)

func runMixed(t *testing.T, b *broker, out *report, seed uint64) {
	length := time.Duration(size(t, "ONCESINK_CHAOS_MINUTES", 30)) * time.Minute
	s := &schedule{name: "mixed", large: true, settings: settings{rows: 10_000, insertTimeout: 3 * time.Second, session: 6 * time.Second}}
	dir, err := os.MkdirTemp("", "oncesink-chaos-mixed-")
	if err != nil {
		t.Fatal(err)
	}
	a := newArena(t, s, b, dir, rand.New(rand.NewPCG(seed, 99)))
	row, began := outcome{name: s.name}, time.Now()
	var needs mixedNeeds
	defer func() {
		a.fill(&row)
		row.seconds, row.failed = time.Since(began).Seconds(), t.Failed()
		if row.failed {
			fmt.Printf("logs: %s\n", dir)
		} else {
			_ = os.RemoveAll(dir)
		}
		out.addMixed(row, &needs)
	}()
	a.feed = a.produce(mixedRows, seed)
	a.seatAll()
	a.awaitGroup()
	needs.before = a.goroutines()
	a.watch()
	a.pump()
	began = time.Now()
	a.background(func() time.Duration {
		needs.sample(a, time.Since(began))
		return 5 * time.Second
	})
	for time.Since(began) < length {
		a.oneFault(time.Since(began) > length/2)
		time.Sleep(a.between(500*time.Millisecond, 3*time.Second))
	}
	needs.length = time.Since(began)
	a.heal()
	a.feed.end()
	truth := a.feed.all()
	a.settleAll()
	time.Sleep(20 * time.Second) // what is idle is given back
	needs.after = a.goroutines()
	for _, s := range a.seats {
		needs.said = append(needs.said, fmt.Sprintf("seat %d: %s", s.n, lastLine(a.sinkIn(s).said(1))))
	}
	a.stopAll()
	a.drainAll()
	a.watched()
	a.verify(truth)
	a.tellDifference(truth.Keys)
	needs.judge(t)
}

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

// awaitGroup waits until all sinks are members and every partition is somebody's.
func (a *arena) awaitGroup() {
	a.feed.allow(1000)
	a.awaitMade(1000)
	a.settleAll()
	time.Sleep(10 * time.Second)
}

// pump has as much made as the sinks can take.
func (a *arena) pump() {
	a.background(func() time.Duration {
		committed := int64(0)
		for _, o := range a.offsets() {
			committed += o.committed
		}
		a.feed.allow(int(committed) + mixedBacklog)
		return 100 * time.Millisecond
	})
}

// oneFault does one thing by chance. Faults of the store only later: a store that has lost its keys has every batch read back from then on.
func (a *arena) oneFault(storeToo bool) {
	l := links[a.rng.IntN(len(links))]
	p := l.proxy(a)
	way := faultproxy.Direction(a.rng.IntN(2))
	pause := func(most time.Duration) { time.Sleep(a.between(100*time.Millisecond, most)) }
	most := 10
	if storeToo {
		most = 13
	}
	switch a.rng.IntN(most) {
	case 0:
		s := a.seats[2] // the others show what they need over time
		a.unseat(s, syscall.SIGKILL)
		pause(4 * time.Second)
		a.seat(s)
		a.count("kill -9")
	case 1:
		s := a.sinkIn(a.anySeat())
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(a.between(500*time.Millisecond, 9*time.Second)) // the session is 6 s
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		a.count("SIGSTOP")
	case 2:
		s := a.seats[2]
		a.unseat(s, syscall.SIGTERM)
		a.seat(s)
		a.count("leave and join")
	case 3:
		p.Cut()
		a.count("cut " + l.name)
	case 4:
		r := l.rule(a, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3})
		pause(3 * time.Second)
		a.add("answers cut "+l.name, r.Account().Faults)
		r.Remove()
	case 5:
		r := l.rule(a, faultproxy.RuleOptions{Fault: faultproxy.CutRequest, Every: 3, After: a.rng.IntN(2000)})
		pause(3 * time.Second)
		a.add("requests cut "+l.name, r.Account().Faults)
		r.Remove()
	case 6:
		p.BlackHole(way, true)
		pause(time.Second)
		p.BlackHole(way, false)
		a.count("black hole " + l.name)
	case 7:
		p.Delay(way, a.between(5*time.Millisecond, 1200*time.Millisecond))
		pause(3 * time.Second)
		p.Delay(way, 0)
		a.count("delay " + l.name)
	case 8:
		p.Refuse(true)
		p.Cut()
		pause(2 * time.Second)
		p.Refuse(false)
		a.count("refused " + l.name)
	case 9:
		a.store.do(a.store.node(), "SCRIPT", "FLUSH")
		a.foreign(1)
		a.count("SCRIPT FLUSH and a foreign block")
	case 10:
		a.store.do(a.store.node(), "FLUSHALL")
		a.count("FLUSHALL")
	case 11:
		a.store.node().Kill()
		pause(2 * time.Second)
		a.store.node().Start()
		a.count("kill -9 of Redis")
	case 12:
		a.broker.Kill()
		pause(2 * time.Second)
		a.broker.Start()
		a.count("kill -9 of the broker")
	}
}

// mixedNeeds is what the sinks need over time.
type mixedNeeds struct {
	at            []float64    // minutes
	rss           [2][]float64 // MB, of the sinks that are never killed
	before, after int          // goroutines of all sinks, idle
	length        time.Duration
	said          []string
}

var rssLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

func (n *mixedNeeds) sample(a *arena, at time.Duration) {
	var mb [2]float64
	for i := range mb {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.sinkIn(a.seats[i]).cmd.Process.Pid))
		m := rssLine.FindSubmatch(text)
		if err != nil || m == nil {
			return
		}
		kb, _ := strconv.ParseFloat(string(m[1]), 64)
		mb[i] = kb / 1024
	}
	n.at = append(n.at, at.Minutes())
	for i := range mb {
		n.rss[i] = append(n.rss[i], mb[i])
	}
}

// slope is by how many MB a minute a sink grows after the warm-up, by least squares; first and last are the means of the first and the last minute of it.
func (n *mixedNeeds) slope(i int) (slope, first, last float64) {
	var x, y []float64
	for k, at := range n.at {
		if at >= warmUp.Minutes() {
			x, y = append(x, at), append(y, n.rss[i][k])
		}
	}
	const minute = 12 // samples
	if len(x) < 2*minute {
		return 0, 0, 0
	}
	mx, my := mean(x), mean(y)
	var sxy, sxx float64
	for k := range x {
		sxy += (x[k] - mx) * (y[k] - my)
		sxx += (x[k] - mx) * (x[k] - mx)
	}
	return sxy / sxx, mean(y[:minute]), mean(y[len(y)-minute:])
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func (n *mixedNeeds) judge(t *testing.T) {
	for i := range n.rss {
		if slope, _, _ := n.slope(i); slope >= mostSlope {
			t.Errorf("sink %d grows by %.2f MB a minute", i, slope)
		}
	}
	// Idle connections of a pool may be more than at the start.
	if n.after > n.before+n.before/10+10 {
		t.Errorf("%d goroutines at the end, %d at the start", n.after, n.before)
	}
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// goroutines are those of all sinks together.
func (a *arena) goroutines() (sum int) {
	a.t.Helper()
	for _, s := range a.seats {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.listen+"/metrics", nil)
		if err != nil {
			cancel()
			a.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			cancel()
			a.t.Fatalf("ask %s for its metrics: %v", s.process.name, err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		cancel()
		m := goroutinesLine.FindSubmatch(text)
		if err != nil || m == nil {
			a.t.Fatalf("%s tells no goroutines: %v", s.process.name, err)
		}
		n, _ := strconv.Atoi(string(m[1]))
		sum += n
	}
	return sum
}

// addMixed keeps the long run's row in the place of the one before.
func (r *report) addMixed(o outcome, n *mixedNeeds) {
	var b strings.Builder
	fmt.Fprintf(&b, `%s

%s, commit %s, seed %d: %.0f minutes, %d records (%.0f a second while the faults were under way). Faults: %s.

| lost | doubled | view samples / above truth | RSS slope after minute %.0f, MB a minute | RSS then and at the end, MB | goroutines of the three sinks, idle, before and after | result |
|---|---|---|---|---|---|---|
`, mixedTitle, r.started.UTC().Format("2006-01-02 15:04 MST"), r.commit, r.seed, n.length.Minutes(), o.records, float64(o.records)/max(1, n.length.Seconds()), o.faults, warmUp.Minutes())
	s0, f0, l0 := n.slope(0)
	s1, f1, l1 := n.slope(1)
	fmt.Fprintf(&b, "| %d | %d | %d / %d | %.2f, %.2f | %.0f to %.0f, %.0f to %.0f | %d, %d | %s |\n", o.lost, o.doubled, o.samples, o.above, s0, s1, f0, l0, f1, l1, n.before, n.after, o.result())
	fmt.Println(b.String())
	old, _ := os.ReadFile(r.path)
	before, _, _ := strings.Cut(string(old), mixedTitle+"\n")
	if before == "" {
		before = r.preamble()
	}
	r.save(strings.TrimRight(before, "\n") + "\n\n" + b.String())
}
