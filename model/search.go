package main

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"time"
	"unsafe"
)

var seed = maphash.MakeSeed()
var seed2 = maphash.MakeSeed()

type hash [2]uint64

func hashOf(s *State) hash {
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))
	return hash{maphash.Bytes(seed, b), maphash.Bytes(seed2, b)}
}

type node struct {
	par int32
	act uint16
}

// search is one breadth-first walk over all states of a world: the first
// violation found has the shortest schedule.
type search struct {
	c     Cfg
	t0    time.Time
	nodes []node
	good  []bool
	rev   [][2]int32 // non-fault edges from,to
}

func initial() State {
	s := cfg.B
	for g := range s.Own {
		for p := range s.Own[g] {
			s.Own[g][p] = -1
		}
	}
	for k := range s.C {
		s.C[k] = -1
		s.Ord[k] = -1
	}
	for i := 0; i < cfg.Sinks; i++ {
		s.Mem[i] = 1
	}
	if cfg.Replay {
		s.Mem[2] = 1
	}
	return s
}

// path replays the schedule that leads to a node.
func (r *search) path(id int32) ([]string, State) {
	var acts []uint16
	for x := id; r.nodes[x].par >= 0; x = r.nodes[x].par {
		acts = append(acts, r.nodes[x].act)
	}
	s := initial()
	var l []string
	labels = true
	for j := len(acts) - 1; j >= 0; j-- {
		e := next(&s)[acts[j]]
		l = append(l, e.Label)
		s = e.S
	}
	labels = false
	return l, s
}

func (r *search) print(l []string) {
	for n, x := range l {
		fmt.Printf("   %2d %s\n", n+1, x)
	}
}

// run explores the world; true when it is broken.
func run(c Cfg) (bad bool) {
	cfg = c
	r := &search{c: c, t0: time.Now()}
	init := initial()
	seen := map[hash]int32{hashOf(&init): 0}
	r.nodes = []node{{-1, 0}}
	r.good = []bool{settledState(&init)}
	frontier, fid := []State{init}, []int32{0}
	depth := 0
	for len(frontier) > 0 {
		var nf []State
		var ni []int32
		for j := range frontier {
			for n, e := range next(&frontier[j]) {
				if e.Viol != "" {
					r.violation(fid[j], n)
					return true
				}
				h := hashOf(&e.S)
				id, ok := seen[h]
				if !ok {
					id = int32(len(r.nodes))
					seen[h] = id
					r.nodes = append(r.nodes, node{fid[j], uint16(n)})
					r.good = append(r.good, settledState(&e.S))
					nf = append(nf, e.S)
					ni = append(ni, id)
				}
				if cfg.Live && !e.Fault {
					r.rev = append(r.rev, [2]int32{fid[j], id})
				}
			}
			if len(r.nodes) > c.MaxSt {
				fmt.Printf("== %s: ok (%d states, cut at depth %d, %.1fs)\n", c.Name, len(r.nodes), depth, time.Since(r.t0).Seconds())
				return false
			}
		}
		frontier, fid = nf, ni
		depth++
	}
	live := ""
	if cfg.Live {
		if r.stuck() {
			return true
		}
		live = " incl. liveness"
	}
	fmt.Printf("== %s: ok%s (%d states, complete, %.1fs)\n", c.Name, live, len(r.nodes), time.Since(r.t0).Seconds())
	runtime.GC()
	return false
}

func (r *search) violation(from int32, act int) {
	l, s := r.path(from)
	labels = true
	e := next(&s)[act]
	labels = false
	fmt.Printf("== %s: VIOLATION %s  (%d states, %.1fs)\n", r.c.Name, e.Viol, len(r.nodes), time.Since(r.t0).Seconds())
	r.print(append(l, e.Label))
}

// stuck looks for a state from which, without another fault, no settled state
// can be reached any more.
func (r *search) stuck() bool {
	n := len(r.nodes)
	cnt := make([]int32, n+1)
	for _, e := range r.rev {
		cnt[e[1]+1]++
	}
	for j := 0; j < n; j++ {
		cnt[j+1] += cnt[j]
	}
	pos := append([]int32{}, cnt...)
	adj := make([]int32, len(r.rev))
	for _, e := range r.rev {
		adj[pos[e[1]]] = e[0]
		pos[e[1]]++
	}
	var q []int32
	for j, g := range r.good {
		if g {
			q = append(q, int32(j))
		}
	}
	for len(q) > 0 {
		x := q[len(q)-1]
		q = q[:len(q)-1]
		for _, y := range adj[cnt[x]:cnt[x+1]] {
			if !r.good[y] {
				r.good[y] = true
				q = append(q, y)
			}
		}
	}
	for j, g := range r.good {
		if !g {
			fmt.Printf("== %s: LIVENESS: stuck state (%d states, %.1fs)\n", r.c.Name, n, time.Since(r.t0).Seconds())
			l, _ := r.path(int32(j))
			r.print(l)
			return true
		}
	}
	return false
}
