package main

// ---- what happens to the world by itself: time, other writers, bad records

// tick: a part of D passes (all of it, unless Half). Deadlines run out, waits end.
func (n *gen) tick() {
	if !cfg.Deadline && !cfg.Quar {
		return
	}
	s := *n.s0
	if cfg.Deadline {
		for x := range s.A {
			if s.A[x].St != 1 {
				continue
			}
			s.A[x].Age--
			if s.A[x].Age > 0 {
				continue
			}
			a := s.A[x]
			s.A[x] = Att{}
			if a.Cl > 0 {
				w := &s.W[a.Cl-1][a.P]
				if a.X == 1 {
					w.XS = 1
				} else {
					w.Step = sCheck
				}
			}
		}
		for i := range s.W {
			for p := range s.W[i] {
				if w := &s.W[i][p]; w.Has == 1 {
					w.tick()
				}
			}
		}
	}
	for h := range s.Quar {
		if s.Quar[h] == 0 {
			continue
		}
		if s.Quar[h] > 1 {
			s.Quar[h]--
			continue
		}
		run := false
		for x := range s.A {
			if s.A[x].St != 0 {
				run = true
			}
		}
		if !run {
			s.Quar[h] = 0
		}
	}
	if s != *n.s0 {
		what := "time D passes"
		if cfg.Half {
			what = "half of D passes"
		}
		n.add(s, false, "", "%s", what)
	}
}

func (w *Worker) tick() {
	if w.Auth > 0 {
		w.Auth--
	}
	if w.XA > 0 {
		w.XA--
	}
	if w.XS == 2 && w.XA == 0 {
		w.XS = 1
	}
	if w.XS == 4 && w.XW < units() {
		w.XW++
	}
	if w.Step == sOver && w.Wait < units() {
		w.Wait++
	}
	if w.SusSt == 1 {
		w.SusW++
		if w.SusW == units() {
			w.SusSt, w.SusW = 2, 0
		}
	}
}

func (n *gen) foreign() {
	if n.s0.B.For == 0 {
		return
	}
	s := *n.s0
	s.B.For--
	s.FT++
	for tp := 0; tp < 2; tp++ {
		s.push(tp, 0x8000|uint16(s.FT))
	}
	if cfg.Views {
		s.pushView(0x8000 | uint16(s.FT))
	}
	n.add(s, true, "", "a foreign writer's block enters the window")
}

// undecodable: a record no longer decodes from now on.
func (n *gen) undecodable() {
	if n.s0.B.Und == 0 {
		return
	}
	for p := 0; p < cfg.NP; p++ {
		for o := 0; o < nrec(p); o++ {
			if n.s0.Und[p]&bit(o) == 0 {
				s := *n.s0
				s.B.Und--
				s.Und[p] |= bit(o)
				n.add(s, true, "", "P%d@%d no longer decodes", p, o)
			}
		}
	}
}
