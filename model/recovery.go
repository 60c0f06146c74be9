package main

// read: without views the table, read by key, says what is missing.
func (t *step) read() {
	s := *t.s0
	w := &s.W[t.i][t.p]
	var m uint8
	for o := int(w.Pos); o < int(w.Last); o++ {
		if w.V[o] == vNew || w.V[o] == vMine {
			if s.Rows[key(t.p, o)] == 0 || cfg.ReadOff {
				m |= bit(o)
			}
		}
	}
	w.Miss = m
	w.Step = sIntent
	t.add(s, false, "", "reads back %s: missing %s of %s", rn(t.p, int(w.Pos), int(w.Last)), maskS(m), maskS(w.mask()))
}

// readWithViews decides between the cases 1, 2a, 2b and 2d of a recovery.
func (t *step) readWithViews() {
	s := *t.s0
	p := t.p
	w := &s.W[t.i][p]
	rows, entry := w.mask(), w.EM
	var there uint8
	for o := int(w.Pos); o < int(w.Last); o++ {
		if rows&bit(o) != 0 && s.Rows[key(p, o)] > 0 {
			there |= bit(o)
		}
	}
	since := func(now, stamp uint8) int { return int(now) - int(stamp-1) }
	safe := !cfg.Case1Win || since(s.Cnt, w.C0) < cfg.Win && since(s.VCnt, w.V0) < cfg.Win
	name := rn(p, int(w.Pos), int(w.Last))
	switch {
	case cfg.Case1 && entry != 0 && (entry == rows || !cfg.Case1Set && entry&rows != 0) && safe:
		w.Miss, w.Step = rows, sIntent
		t.add(s, false, "", "case 1: will send %s again under the same token", name)
	case cfg.Case2a && entry != 0 && s.finished(tok(p, int(w.Pos), int(w.Last), int(entry))):
		for o := range w.V {
			if entry&rows&bit(o) != 0 {
				w.V[o] = vOwn
			}
		}
		w.EM, w.C0 = 0, 0
		t.free(s, there, name+" case 2a: query_log says finished;")
	case entry != 0:
		known := !cfg.Case2bL || since(s.Rst, w.R0) == 0
		if cfg.Case2b && there == 0 && known {
			w.Miss, w.Step, w.EM = rows, sIntent, 0
			t.add(s, false, "", "case 2b: %s is not there, every attempt ended: sends", name)
			return
		}
		if !cfg.Case2d {
			w.EM, w.C0 = 0, 0
			t.free(s, there, name)
			return
		}
		w.Step = sStop
		t.add(s, false, "", "case 2d: %s can't be known: STOPS", name)
	default:
		t.free(s, there, name)
	}
}

// free judges the rows that no intent lists, one by one.
func (t *step) free(s State, there uint8, why string) {
	w := &s.W[t.i][t.p]
	if cfg.FreeView && cfg.Case2d && w.mask()&there != 0 && s.Rst > 0 {
		w.Step = sStop
		t.add(s, false, "", "%s rows %s are there, but an insert may have been killed: STOPS", why, maskS(w.mask()&there))
		return
	}
	for o := range w.V {
		if w.mask()&there&bit(o) != 0 {
			w.V[o] = vOwn
		}
	}
	w.Miss, w.Step = w.mask(), sIntent
	t.add(s, false, "", "%s rows %s are there, sends %s", why, maskS(there), maskS(w.Miss))
}
