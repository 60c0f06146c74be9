package main

import "fmt"

// Edge is one step of the world.
type Edge struct {
	S     State
	Label string
	Fault bool
	Viol  string
}

// gen collects the steps that are possible in s0.
type gen struct {
	s0  *State
	out []Edge
	pre string
}

func (n *gen) add(s State, fault bool, viol, f string, a ...any) {
	s.norm()
	e := Edge{S: s, Fault: fault, Viol: viol}
	if labels {
		e.Label = n.pre + fmt.Sprintf(f, a...)
	}
	n.out = append(n.out, e)
}

func next(s0 *State) []Edge {
	n := &gen{s0: s0}
	n.assign()
	for i := 0; i < MS; i++ {
		g := grp(i)
		if g == 1 && !cfg.Replay || g == 0 && i >= cfg.Sinks {
			continue
		}
		if s0.Mem[i] == 0 {
			n.restart(i)
			continue
		}
		n.membership(i, g)
		for p := 0; p < cfg.NP; p++ {
			if s0.W[i][p].Has == 1 {
				n.worker(i, p, g)
			}
		}
	}
	n.attempts()
	n.serverCrash()
	n.tick()
	n.foreign()
	n.storeLoss()
	n.warm()
	n.expire()
	n.lateClaim()
	n.undecodable()
	n.operator()
	n.staleCommit()
	return n.out
}
