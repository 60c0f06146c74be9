package main

// ---- the commit gate and the take-over of claims (F6)

func (w *Worker) gateOpen() bool {
	if cfg.GateOff {
		return w.X == 0
	}
	for o := int(w.PF); o < int(w.Pos); o++ {
		if w.V[o] == vDup {
			return false
		}
	}
	return w.X == 0
}

func (t *step) gate() {
	s0, w0, i, p := t.s0, t.w0, t.i, t.p
	for o := int(w0.PF); o < int(w0.Pos); o++ {
		if w0.V[o] != vDup {
			continue
		}
		k := key(p, o)
		quar := s0.Quar[hg(k)] > 0
		og, op, oo := oget(w0.O[o])
		if !quar && s0.settled(k, w0.O[o]) && (!cfg.GateClaim || s0.C[k] == w0.O[o]) {
			s := *s0
			s.W[i][p].V[o] = vDupS
			s.W[i][p].Sus, s.W[i][p].SusSt = 0, 0
			t.add(s, false, "", "gate of P%d@%d: owner G%d/P%d@%d is below acked", p, o, og, op, oo)
		}
		// slow path: read in ClickHouse
		if s0.Rows[k] > 0 && t.readSettles(w0.O[o]) {
			s := *s0
			s.W[i][p].V[o] = vDupS
			s.W[i][p].Sus, s.W[i][p].SusSt = 0, 0
			t.add(s, false, "", "gate of P%d@%d: key %c read in ClickHouse", p, o, 'a'+k)
			continue
		}
		if cfg.R && t.ask(o) {
			continue
		}
		if s0.Rows[k] > 0 || quar || w0.Sus != 0 || w0.X != 0 {
			continue
		}
		if t.wontCome(o) {
			s := *s0
			w := &s.W[i][p]
			w.Sus, w.SusSt, w.SusW = uint8(o+1), 2, 0
			if cfg.Deadline {
				w.SusSt = 1
			}
			w.SusInc = s.Inc[k]
			if cfg.R {
				w.SusN = 1
			}
			t.add(s, false, "", "gate of P%d@%d: key %c not in ClickHouse, owner G%d/P%d@%d will not come", p, o, 'a'+k, og, op, oo)
		}
	}
	if w0.SusSt >= 2 && s0.Quar[hg(key(p, int(w0.Sus)-1))] == 0 {
		t.takeOver()
	}
}

// readSettles: with a view, the table alone does not show that the row arrived.
func (t *step) readSettles(owner int8) bool {
	if !cfg.Views || !cfg.GateView {
		return true
	}
	if owner == ownAsk {
		return false
	}
	og, op, oo := oget(owner)
	if oo < int(t.s0.K[og][op].Off) {
		return true
	}
	for _, a := range t.s0.A {
		if a.St != 0 && int(a.G) == og && int(a.P) == op {
			return false
		}
	}
	return t.s0.Rst == 0
}

// wontCome is the condition of F6.
func (t *step) wontCome(o int) bool {
	s0, w0, p, g := t.s0, t.w0, t.p, t.g
	k := key(p, o)
	og, op, oo := oget(w0.O[o])
	if !s0.live(og) {
		return true
	}
	if !cfg.Passed {
		return false
	}
	if oo < int(s0.K[og][op].Off) || og == g && op == p && (oo < int(w0.PF) || s0.DL[p]&bit(oo) != 0) {
		return true
	}
	if cfg.R && s0.DL[op]&bit(oo) != 0 { // dead-lettered
		return true
	}
	if cfg.OldRun && s0.C[k] == w0.O[o] && s0.Run[og][op] > 0 && t.claimOfOldRun(k, og, op) {
		return true
	}
	return !cfg.R && s0.C[k] != w0.O[o] // the claim is gone or moved: ask again
}

// claimOfOldRun: no worker of the owner's partition holds the claim's nonce.
func (t *step) claimOfOldRun(k, og, op int) bool {
	for j := range t.s0.W {
		w := t.s0.W[j][op]
		if grp(j) != og || w.Has == 0 {
			continue
		}
		for o := 0; o < nrec(op); o++ {
			if key(op, o) == k && w.Nc&bit(o) != 0 {
				return false
			}
		}
	}
	return true
}

// ask: the claim changed, so it is asked for again. Absent, it becomes NEW for
// this record, after its batch was inserted.
func (t *step) ask(o int) bool {
	s0, w0, i, p, g := t.s0, t.w0, t.i, t.p, t.g
	k := key(p, o)
	c := s0.C[k]
	if c == w0.O[o] {
		return false
	}
	if s0.Quar[hg(k)] > 0 || w0.X != 0 {
		return true
	}
	if cfg.FenceCl && s0.Run[g][p] != w0.AGen {
		t.dropAll("its claim call is refused (a later assignment): drops its workers, rejoins")
		return true
	}
	s := *s0
	w := &s.W[i][p]
	w.Sus, w.SusSt, w.SusW = 0, 0, 0
	me := oid(g, p, o)
	late := func(wait bool) {
		w.V[o] = vMine
		w.X |= bit(o)
		w.XEp = s.Ep
		w.XS, w.XW, w.XA = 1, 0, units()
		if wait {
			w.XS = 4
		}
	}
	switch {
	case c < 0 || c == ownGone:
		id := newOwner(me, c, s.Cold[k] == 1)
		if cfg.LateTaken && id == me {
			id += ownTaken
		}
		s.setClaim(k, id)
		s.Fr[k] = 0
		s.touch(k, i, p, o)
		late(cfg.Cold && s.Cold[k] == 1 || s.Verify[hg(k)] == 1)
		t.add(s, false, "", "gate of P%d@%d: the claim of %c is gone, asks again: NEW, late", p, o, 'a'+k)
	case c == ownTable:
		w.V[o] = vDupS
		t.add(s, false, "", "gate of P%d@%d: asks again: in the table", p, o)
	case c == me || c == me+ownTaken:
		if cfg.LateTaken {
			s.C[k] = me + ownTaken
		}
		s.touch(k, i, p, o)
		late(true)
		t.add(s, false, "", "gate of P%d@%d: asks again: MINE, late", p, o)
	default:
		w.O[o] = c
		og, op, oo := oget(c)
		t.add(s, false, "", "gate of P%d@%d: asks again: owner is G%d/P%d@%d now", p, o, og, op, oo)
	}
	return true
}

func (t *step) takeOver() {
	s0, w0, i, p, g := t.s0, t.w0, t.i, t.p, t.g
	o := int(w0.Sus) - 1
	k := key(p, o)
	s := *s0
	w := &s.W[i][p]
	og, op, _ := oget(w.O[o])
	run := false
	for _, a := range s0.A {
		if a.St == 2 && int(a.G) == og && int(a.P) == op {
			run = true
		}
	}
	st, inc, same := w.SusSt, w.SusInc, w.SusN
	if !cfg.R {
		same = 0
		if inc == s.Inc[k] {
			same = 1
		}
	}
	w.Sus, w.SusSt, w.SusInc, w.SusN = 0, 0, 0, 0
	switch {
	case cfg.Deadline && st == 2 && (run || s.Rows[k] > 0):
		if !run {
			t.add(s, false, "", "take-over of %c dropped: the row is there", 'a'+k)
		}
	case cfg.Deadline && st == 2:
		w.Sus, w.SusSt, w.SusInc, w.SusN = uint8(o+1), 3, inc, w0.SusN
		t.add(s, false, "", "take-over of %c: reads once more, still missing", 'a'+k)
	case s.C[k] == w.O[o] && (!cfg.IncFix || same == 1) || s.C[k] < 0 && cfg.Passed && !cfg.R:
		if cfg.FenceCl && s0.Run[g][p] != w0.AGen {
			t.dropAll("its take-over is refused (a later assignment): drops its workers, rejoins")
			return
		}
		id := oid(g, p, o)
		if cfg.Taken {
			id += ownTaken
		}
		s.setClaim(k, id)
		if cfg.R {
			s.Fr[k] = 0
			s.touch(k, i, p, o)
			w.XA = units()
		}
		w.V[o] = vMine
		w.X |= bit(o)
		w.XS = 1
		w.XEp = s.Ep
		t.add(s, false, "", "takes the claim of %c over by compare-and-set for P%d@%d", 'a'+k, p, o)
	case s.C[k] >= 0 && s.C[k] != w.O[o] && cfg.Passed:
		w.O[o] = s.C[k]
		if s.C[k] == oid(g, p, o) || s.C[k] == oid(g, p, o)+ownTaken {
			w.V[o] = vMine
			w.X |= bit(o)
			w.XS = 4
			w.XW = 0
			w.XEp = s.Ep
		}
		t.add(s, false, "", "take-over of %c: another owner now, waits for it", 'a'+k)
	default:
		t.add(s, false, "", "take-over of %c fails (claim changed)", 'a'+k)
	}
}

// release deletes the claim of a dead-lettered record, by compare with the nonce.
func (t *step) release() {
	if t.w0.Rel == 0 {
		return
	}
	for o := 0; o < t.N; o++ {
		if t.w0.Rel&bit(o) == 0 {
			continue
		}
		s := *t.s0
		w := &s.W[t.i][t.p]
		w.Rel &^= bit(o)
		k := key(t.p, o)
		me := oid(t.g, t.p, o)
		c := s.C[k]
		if (c == me || c == me+ownTaken) && (!cfg.RelNonce || w.Nc&bit(o) != 0) && s.Quar[hg(k)] == 0 {
			s.delClaim(k)
			if cfg.Tomb {
				s.setClaim(k, ownGone)
			}
			t.add(s, false, "", "releases the claim of %c (P%d@%d was dead-lettered)", 'a'+k, t.p, o)
		} else {
			t.add(s, false, "", "release of %c does nothing: the claim has changed", 'a'+k)
		}
	}
}
