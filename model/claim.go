package main

import (
	"fmt"
	"strings"
)

// claim takes the verdicts of the batch; true when all are there.
func (t *step) claim() bool {
	i, p, g := t.i, t.p, t.g
	for o := int(t.w0.Pos); o < int(t.w0.Last); o++ {
		if t.s0.Quar[hg(key(p, o))] > 0 {
			return false
		}
	}
	if t.s0.Reas[i] == 1 {
		t.reassert()
		return false
	}
	if cfg.R && cfg.FenceCl && t.s0.Run[g][p] != t.w0.AGen {
		t.dropAll("its claim call is refused (a later assignment): drops its workers, rejoins")
		return false
	}
	if v := t.voidOf(); cfg.Quar && v != 0 {
		some := false
		s := *t.s0
		w := &s.W[i][p]
		for o := int(w.Pos); o < int(w.Last); o++ {
			if v&bit(hg(key(p, o))) == 0 {
				continue
			}
			if w.V[o] != vNone && w.V[o] != vDead {
				some = true
				w.V[o] = vNone
			}
			if cfg.R {
				w.Nc &^= bit(o)
			}
		}
		for h := range w.Ep {
			if v&bit(h) != 0 {
				w.Ep[h], w.Lo[h] = s.Ep[h], w.Pos
			}
		}
		if cfg.R {
			s.endAttempt(i, p)
		}
		if some {
			w.Rec = 1
			t.add(s, false, "", "a reply of another epoch: claims %s afresh", rn(p, int(w.Pos), int(w.Last)))
			return false
		}
		t.s0, t.w0 = &s, s.W[i][p]
	}
	done := true
	for o := int(t.w0.Pos); o < int(t.w0.Last); o++ {
		if t.w0.V[o] == vNone {
			done = false
		}
	}
	if done {
		return true
	}
	if cfg.Atomic {
		s := *t.s0
		var l []string
		t.depart(&s)
		for o := int(t.w0.Pos); o < int(t.w0.Last); o++ {
			if t.w0.V[o] == vNone {
				r := t.one(&s, o)
				if labels {
					l = append(l, fmt.Sprintf("%d(%c):%s", o, 'a'+key(p, o), r))
				}
			}
		}
		if cfg.R {
			s.W[i][p].Begun = 2
		}
		t.add(s, false, "", "claims P%d %s", p, strings.Join(l, " "))
		t.lost(s)
		return false
	}
	for o := int(t.w0.Pos); o < int(t.w0.Last); o++ {
		if t.w0.V[o] == vNone {
			s := *t.s0
			t.depart(&s)
			r := t.one(&s, o)
			t.add(s, false, "", "claims P%d@%d (%c): %s", p, o, 'a'+key(p, o), r)
		}
	}
	return false
}

// depart: the call leaves the sink under the epochs it has read.
func (t *step) depart(s *State) {
	w := &s.W[t.i][t.p]
	first := w.Begun == 0
	for o := int(w.Pos); o < int(w.Last); o++ {
		h := hg(key(t.p, o))
		w.Ep[h] = s.Ep[h]
		if cfg.Groups {
			w.Tch |= bit(h)
		}
		if s.Verify[h] == 1 {
			w.Vf = 1
		}
	}
	if cfg.ClaimDl && (first || !cfg.FirstDep) {
		w.Auth = units()
	}
	if cfg.R {
		w.Begun = 1
		if s.Late.St == 1 && int(s.Late.I) == t.i && int(s.Late.P) == t.p {
			s.Late.Ans = 1
		}
	}
}

// lost: the reply of a claim call that was applied does not arrive; or the call
// itself is slow, is sent again, and its first copy stays in the network.
func (t *step) lost(applied State) {
	i, p := t.i, t.p
	if t.s0.B.Rep > 0 {
		s := applied
		s.B.Rep--
		w, old := &s.W[i][p], t.w0
		s.DL = t.s0.DL
		w.V, w.O, w.Lo, w.Vf, w.Begun = old.V, old.O, old.Lo, old.Vf, 1
		t.add(s, true, "", "claim call of %s is applied, its reply is LOST", rn(p, int(w.Pos), int(w.Last)))
	}
	if t.s0.B.LC > 0 && t.s0.Late.St == 0 {
		s := *t.s0
		s.B.LC--
		t.depart(&s)
		w := s.W[i][p]
		s.Late = Late{St: 1, I: uint8(i), P: uint8(p), G: uint8(t.g), F: w.Pos, L: w.Last, AGen: w.AGen, Same: 1, Ep: w.Ep}
		t.add(s, true, "", "claim call of %s times out (a copy stays in the network)", rn(p, int(w.Pos), int(w.Last)))
	}
}

func (t *step) reassert() {
	s := *t.s0
	s.Reas[t.i] = 0
	for q := 0; q < cfg.NP; q++ {
		w := &s.W[t.i][q]
		if w.Has == 0 {
			continue
		}
		for o := 0; o < nrec(q); o++ {
			if w.V[o] == vNew || w.V[o] == vMine || w.V[o] == vOwn {
				if s.C[key(q, o)] < 0 {
					s.setClaim(key(q, o), oid(t.g, q, o))
				}
			}
		}
	}
	t.add(s, false, "", "notices the new Redis and asserts its claims in memory again")
}

// one is the store's answer for one record, and what the worker makes of it.
func (t *step) one(s *State, o int) string {
	p, g := t.p, t.g
	w := &s.W[t.i][p]
	k := key(p, o)
	if s.Und[p]&bit(o) != 0 {
		w.V[o] = vDead
		s.DL[p] |= bit(o)
		if cfg.Interval {
			for h := range w.Lo {
				if h == 0 || cfg.Groups {
					w.Lo[h] = uint8(o + 1)
				}
			}
		}
		return "DEAD-LETTER"
	}
	for q := int(w.Pos); q < o; q++ { // in-batch dedup
		if key(p, q) == k && s.Und[p]&bit(q) == 0 && (!cfg.Recl || w.V[q] != vDead) {
			if fp(p, q) != fp(p, o) {
				w.V[o] = vDead
				s.DL[p] |= bit(o)
				return "CONFLICT in batch"
			}
			w.V[o] = vDupS
			return "DUP in batch"
		}
	}
	me := oid(g, p, o)
	c := s.C[k]
	if c < 0 || c == ownGone {
		s.setClaim(k, newOwner(me, c, s.Cold[k] == 1))
		if cfg.R {
			s.Fr[k] = 1
			if cfg.VerFresh && s.Verify[hg(k)] == 1 {
				s.Fr[k] = 0
			}
			s.touch(k, t.i, p, o)
		}
		w.V[o] = vNew
		if s.Cold[k] == 1 && cfg.Cold {
			w.Vf = 1
		}
		return "NEW"
	}
	if c == ownTable {
		if cfg.ListView && w.EM&bit(o) != 0 {
			s.setClaim(k, me)
			s.touch(k, t.i, p, o)
			w.V[o] = vMine
			return "in the table, but listed: MINE"
		}
		w.V[o] = vDupS
		return "DUP of a row in the table"
	}
	if c == me || c == me+ownTaken {
		return t.mine(s, o, c)
	}
	og, op, oo := oget(c)
	if fp(op, oo) != fp(p, o) {
		w.V[o] = vDead
		s.DL[p] |= bit(o)
		return "CONFLICT"
	}
	if cfg.OwnFwd && og == g && op == p && oo >= int(w.Pos) {
		return t.mine(s, o, c)
	}
	if c >= ownTaken && cfg.Taken && fp(op, oo) == fp(p, o) {
		w.V[o], w.O[o] = vDup, c
		return fmt.Sprintf("DUP of taken G%d/P%d@%d", og, op, oo)
	}
	if og == g && op == p && oo < int(w.Pos) {
		if cfg.Interval && oo < int(w.Lo[hg(k)]) {
			w.V[o], w.O[o] = vDup, c
			return fmt.Sprintf("DUP of own earlier P%d@%d not in the settled run", op, oo)
		}
		w.V[o] = vDupS
		return "DUP of own earlier"
	}
	w.V[o], w.O[o] = vDup, c
	return fmt.Sprintf("DUP of G%d/P%d@%d", og, op, oo)
}

// newOwner: a key that was released, or has expired, may have stood inside
// somebody's acked: its next owner is a taker, settled by reading only.
func newOwner(me, c int8, cold bool) int8 {
	if c == ownGone || cold && cfg.ColdTaken {
		return me + ownTaken
	}
	return me
}

// mine: the claim names this record (or a later one of the same partition).
func (t *step) mine(s *State, o int, c int8) string {
	p, g := t.p, t.g
	w := &s.W[t.i][p]
	k := key(p, o)
	name := "MINE"
	if c != oid(g, p, o) && c != oid(g, p, o)+ownTaken {
		_, op, oo := oget(c)
		name = fmt.Sprintf("MINE (owner is own later P%d@%d)", op, oo)
	}
	if !cfg.R {
		w.V[o] = vMine
		if cfg.IncFix {
			s.Inc[k]++
		}
		return name
	}
	if (!cfg.Told || w.Nc&bit(o) != 0) && s.Fr[k] == 1 {
		w.V[o] = vNew
		if !cfg.Told {
			s.touch(k, t.i, p, o)
		}
		if s.Cold[k] == 1 && cfg.Cold {
			w.Vf = 1
		}
		return "NEW (its own nonce, fresh)"
	}
	told := w.Nc&bit(o) != 0
	w.V[o] = vMine
	if !told {
		s.touch(k, t.i, p, o)
	}
	if cfg.FreshClr {
		s.Fr[k] = 0
	}
	if t.inside(k, c) {
		entry := w.EM != 0 && w.EM&bit(o) != 0
		if entry && cfg.ShortList || !entry && cfg.ShortFree {
			w.V[o] = vOwn
			return name + ", inside acked: settled"
		}
	}
	return name
}

// inside: the owner was inside acked when this assignment began.
func (t *step) inside(k int, c int8) bool {
	w := &t.w0
	h := ackedOf(k)
	if c >= ownTaken && cfg.ShortTaken {
		return false
	}
	if cfg.ShortEp && w.AEp[h] != t.s0.Ep[h] {
		return false
	}
	_, _, oo := oget(c)
	return oo >= int(w.ALo[h]) && oo < int(w.AHi[h])
}

// verdicts: what the worker does once all verdicts are there.
func (t *step) verdicts() {
	s := *t.s0
	w := &s.W[t.i][t.p]
	m := w.mask()
	w.Miss = m
	mine := false
	for o := int(w.Pos); o < int(w.Last); o++ {
		if w.V[o] == vMine {
			mine = true
		}
	}
	verify := cfg.VerClaim && w.Vf == 1
	if !cfg.R && s.Verify[0] == 1 {
		verify = true
	}
	switch {
	case (w.Rec == 1 || cfg.MineRead && mine) && !cfg.OverOff:
		w.Rec = 1
		w.Step, w.Wait = sOver, 0
	case w.Rec == 1, cfg.MineRead && mine, verify:
		w.Step = sRead
	default:
		w.Step = sIntent
	}
	if m == 0 && (w.Rec == 0 || cfg.R) {
		w.Step = sIntent
	}
	t.add(s, false, "", "verdicts of %s complete (rows %s)", rn(t.p, int(w.Pos), int(w.Last)), maskS(m))
}
