package main

// ---- what a worker does first: the committed offset, then its run in the store

func (t *step) fetch() {
	s := *t.s0
	w := &s.W[t.i][t.p]
	k := s.K[t.g][t.p]
	w.Pos, w.PF = k.Off, k.Off
	if !cfg.R {
		s.newRun(w, t.g, t.p)
	}
	w.Last, w.Step = w.Pos, sIdle
	if k.Int == 1 {
		w.Last, w.Rec, w.Step = k.Last, 1, sClaim
		w.EM, w.C0, w.V0, w.R0 = k.Mask, k.C0, k.V0, k.R0
		if cfg.Bound > 0 {
			w.NB = 1
		}
		if !cfg.R {
			w.EM = 0
		}
	}
	if cfg.R {
		w.Step = sJoin
	}
	if k.Int == 1 {
		t.add(s, false, "", "fetches offsets: P%d off=%d intent to %d", t.p, k.Off, k.Last-1)
	} else {
		t.add(s, false, "", "fetches offsets: P%d off=%d no intent", t.p, k.Off)
	}
}

// newRun is F3.
func (s *State) newRun(w *Worker, g, p int) {
	if !cfg.Interval {
		return
	}
	for h := 0; h < MH; h++ {
		if h > 0 && !cfg.Groups {
			continue
		}
		if s.Hi[h][g][p] != w.Pos {
			if cfg.R && !cfg.RunFirst {
				w.Lo[h] = w.Pos // told with the first publish only
				continue
			}
			s.Lo[h][g][p], s.Hi[h][g][p] = w.Pos, w.Pos
		}
		w.Lo[h] = s.Lo[h][g][p]
	}
}

// join: acked is read, then the new run stands in the store, under the
// generation of the assignment, before anything is claimed.
func (t *step) join() {
	for h := range t.s0.Quar {
		if t.s0.Quar[h] > 0 {
			return
		}
	}
	g, p := t.g, t.p
	if (cfg.FenceCl || cfg.FencePub) && t.s0.Run[g][p] > t.w0.AGen {
		t.dropAll("the store knows a later assignment: drops its workers, rejoins")
		return
	}
	s := *t.s0
	w := &s.W[t.i][p]
	s.Run[g][p] = w.AGen
	for h := 0; h < MH; h++ {
		w.ALo[h], w.AHi[h], w.AEp[h], w.Ep[h] = s.Lo[h][g][p], s.Hi[h][g][p], s.Ep[h], s.Ep[h]
	}
	s.newRun(w, g, p)
	w.Step = sIdle
	if w.Last > w.Pos {
		w.Step = sClaim
	}
	t.add(s, false, "", "registers its run of P%d in the store; acked was [%d,%d), is [%d,%d)", p, w.ALo[0], w.AHi[0], s.Lo[0][g][p], s.Hi[0][g][p])
}
