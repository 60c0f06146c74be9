//go:build chaos

package e2e

import (
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
)

// link is one of the three ways out of a sink.
type link struct {
	name   string
	silent time.Duration // how long a client may wait on a connection that has fallen silent
	proxy  func(a *arena) *faultproxy.Proxy
	rule   func(a *arena, o faultproxy.RuleOptions) *faultproxy.Rule
}

var links = []link{
	{
		name: "kafka", silent: 12 * time.Second,
		proxy: func(a *arena) *faultproxy.Proxy { return a.toKafka },
		rule: func(a *arena, o faultproxy.RuleOptions) *faultproxy.Rule {
			o.Marker = "os1." // an intent on its way with the commit of an offset
			return a.toKafka.Add(o)
		},
	},
	{
		name: "redis", silent: 4 * time.Second,
		proxy: func(a *arena) *faultproxy.Proxy { return a.store.link },
		rule: func(a *arena, o faultproxy.RuleOptions) *faultproxy.Rule {
			o.Marker = "evalsha"
			return a.store.link.Add(o)
		},
	},
	{
		name: "clickhouse", silent: 4 * time.Second,
		proxy: func(a *arena) *faultproxy.Proxy { return a.toEngine },
		rule: func(a *arena, o faultproxy.RuleOptions) *faultproxy.Rule {
			return a.insertRule(a.toEngine, o)
		},
	},
}

func linkSchedules() (out []schedule) {
	for _, kind := range []struct {
		name string
		run  func(a *arena, l link)
	}{
		{"cut-request", (*arena).cutRequests},
		{"cut-bytes", (*arena).cutBytes},
		{"cut-forwarded", (*arena).cutForwarded},
		{"swallow-reply", (*arena).swallowReplies},
		{"black-hole", (*arena).blackHoles},
		{"delay", (*arena).delays},
	} {
		for _, l := range links {
			// A commit that was applied and whose answer never came before the partition went to another member is counted by nobody.
			unheard := l.name == "kafka" && (kind.name == "swallow-reply" || kind.name == "black-hole" || kind.name == "delay")
			s := schedule{
				name: l.name + "-" + kind.name, account: !unheard, settings: settings{insertTimeout: 3 * time.Second},
				run: func(a *arena) { kind.run(a, l) },
			}
			if unheard && kind.name != "delay" {
				s.span = 40 * time.Second
			}
			out = append(out, s)
		}
	}
	return out
}

// cutRequests: the connection breaks at some byte of a request, counted from its marker.
func (a *arena) cutRequests(l link) {
	for going := true; going; {
		r := l.rule(a, faultproxy.RuleOptions{Fault: faultproxy.CutRequest, Every: 3, After: a.rng.IntN(600)})
		going = a.feeding(800 * time.Millisecond)
		a.add("requests cut", r.Account().Faults)
		r.Remove()
	}
}

// cutBytes: every connection breaks after some bytes, of the one direction or of the other.
func (a *arena) cutBytes(l link) {
	p := l.proxy(a)
	for n := 0; a.feeding(500 * time.Millisecond); n++ {
		d := faultproxy.Direction(n % 2)
		before := p.Stats().Cuts
		p.CutAfter(d, 1+int64(a.rng.IntN(1<<uint(4+a.rng.IntN(12)))))
		p.Cut()
		a.feeding(a.between(300*time.Millisecond, 1200*time.Millisecond))
		p.CutAfter(d, 0)
		p.Cut()
		a.add([]string{"cuts on the way there", "cuts on the way back"}[n%2], p.Stats().Cuts-before)
	}
}

// cutForwarded: the request is done, and its answer is lost with the connection.
func (a *arena) cutForwarded(l link) {
	r := l.rule(a, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3})
	for a.feeding(100 * time.Millisecond) {
	}
	a.add("answers cut off", r.Account().Faults)
	r.Remove()
}

// swallowReplies: the request is done, its answer never comes, and the connection stays open.
func (a *arena) swallowReplies(l link) {
	a.silence(l, "answers swallowed", faultproxy.ToClient)
}

// blackHoles: nothing arrives any more, in either direction, and nobody is told.
func (a *arena) blackHoles(l link) {
	a.silence(l, "black holes", faultproxy.ToServer, faultproxy.ToClient)
}

// silence makes the connections of a moment silent for good. New ones work again after that moment.
func (a *arena) silence(l link, what string, ways ...faultproxy.Direction) {
	p := l.proxy(a)
	for a.feeding(a.between(500*time.Millisecond, 1500*time.Millisecond)) {
		before := p.Stats().Bytes
		for _, d := range ways {
			p.BlackHole(d, true)
		}
		a.feeding(a.between(100*time.Millisecond, time.Second))
		for _, d := range ways {
			p.BlackHole(d, false)
		}
		if p.Stats().Bytes != before {
			a.count(what)
		}
		a.feeding(a.between(l.silent/2, l.silent))
	}
}

// delays: everything takes its time, now and then more than the insert deadline; an insert may land long after its sender has given up.
func (a *arena) delays(l link) {
	p := l.proxy(a)
	late := l.rule(a, faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Every: 7, For: 4 * time.Second})
	for n := 0; a.feeding(a.between(300*time.Millisecond, 900*time.Millisecond)); n++ {
		by := a.between(5*time.Millisecond, 300*time.Millisecond)
		if n%4 == 3 {
			by = 1200 * time.Millisecond // the deadline is 1 s
		}
		for _, d := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
			p.Delay(d, by)
		}
		a.count("times of delay")
		a.feeding(a.between(300*time.Millisecond, 1500*time.Millisecond))
		for _, d := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
			p.Delay(d, 0)
		}
	}
	a.add("requests landed 4 s late", late.Account().Faults)
	late.Remove()
}
