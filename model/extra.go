package main

// ---- rows that became NEW or taken after the insert of their batch: an insert of their own

func (t *step) extra() {
	w0, i, p, g := t.w0, t.i, t.p, t.g
	end := w0.Pos
	switch w0.XS {
	case 0:
		s := *t.s0
		s.W[i][p].XS = 1
		t.add(s, false, "", "prepares the taken-over rows")
	case 1: // intent again
		if cfg.R && cfg.ClaimDl {
			if w0.XA == 0 {
				t.renewExtra()
				return
			}
		} else if cfg.Quar && t.extraVoid() {
			if t.extraQuar() {
				return
			}
			s := *t.s0
			t.askExtra(&s)
			t.add(s, false, "", "new epoch: asks for the taken-over claims again")
			return
		}
		if cfg.Bound > 0 && !cfg.Reserve && w0.NB >= uint8(cfg.Bound) {
			return // the list is full
		}
		t.commit(KP{Off: w0.PF, Int: 1, Last: end, Mask: w0.X}, func(s *State, w *Worker) { w.XS = 2 }, " (intent again, taken-over rows)")
	case 2:
		s := *t.s0
		w := &s.W[i][p]
		a := Att{St: 1, G: uint8(g), P: uint8(p), Mask: w.X, Cl: uint8(i + 1), X: 1, F: w.PF, L: end}
		if cfg.Deadline {
			a.Age = units()
			if cfg.ClaimDl {
				a.Age = w.XA
			}
		}
		if s.addAtt(a) {
			w.XS = 3
			t.add(s, false, "", "sends the taken-over rows %s of P%d", maskS(w.X), p)
		}
	case 4:
		if w0.XW >= units() && !t.running() {
			s := *t.s0
			w := &s.W[i][p]
			for o := 0; o < t.N; o++ {
				if w.X&bit(o) != 0 && s.Rows[key(p, o)] > 0 {
					w.X &^= bit(o)
					w.V[o] = vOwn
				}
			}
			w.XS, w.XW = 1, 0
			if w.X == 0 {
				w.XS = 0
			}
			t.add(s, false, "", "reads back the taken-over rows")
		}
	}
}

func (t *step) extraVoid() bool {
	for o := 0; o < t.N; o++ {
		h := hg(key(t.p, o))
		if t.w0.X&bit(o) != 0 && t.w0.XEp[h] != t.s0.Ep[h] {
			return true
		}
	}
	return false
}
func (t *step) extraQuar() bool {
	for o := 0; o < t.N; o++ {
		if t.w0.X&bit(o) != 0 && t.s0.Quar[hg(key(t.p, o))] > 0 {
			return true
		}
	}
	return false
}

// askExtra gives the rows back to the gate.
func (t *step) askExtra(s *State) {
	w := &s.W[t.i][t.p]
	for o := 0; o < t.N; o++ {
		if w.X&bit(o) != 0 {
			w.V[o], w.O[o] = vDup, oid(t.g, t.p, o)
			if cfg.R {
				w.O[o] = ownAsk
			}
		}
	}
	w.X, w.XS = 0, 0
}

// renewExtra: the deadline of the late rows is over.
func (t *step) renewExtra() {
	if t.extraQuar() {
		return
	}
	if cfg.FenceCl && t.s0.Run[t.g][t.p] != t.w0.AGen {
		t.dropAll("its renewal is refused (a later assignment): drops its workers, rejoins")
		return
	}
	s := *t.s0
	w := &s.W[t.i][t.p]
	if t.extraVoid() || cfg.Renew && w.X&^w.Nc != 0 {
		t.askExtra(&s)
		t.add(s, false, "", "renewal of the late rows fails: asks again")
		return
	}
	for o := 0; o < t.N; o++ {
		if w.X&bit(o) != 0 {
			s.touch(key(t.p, o), t.i, t.p, o)
		}
	}
	w.XA = units()
	t.add(s, false, "", "renews the claims of the late rows %s of P%d", maskS(w.X), t.p)
}
