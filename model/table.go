package main

import "fmt"

// ---- ClickHouse: insert statements, dedup window, views, query_log

func tpOf(k int) int {
	if cfg.Split {
		return k % 2
	}
	return 0
}
func (s *State) push(tp int, t uint16) {
	if cfg.Win == 2 {
		s.Tok[tp][1] = s.Tok[tp][0]
	}
	s.Tok[tp][0] = t
	if cfg.Views && tp == 0 {
		s.Cnt++
	}
}

// land writes the rows of one table partition; returns the violation.
func (s *State) land(a *Att, tp int) string {
	t := tok(int(a.P), int(a.F), int(a.L), int(a.Mask))
	for i := 0; i < cfg.Win; i++ {
		if s.Tok[tp][i] == t {
			return ""
		}
	}
	any := false
	v := ""
	for o := 0; o < nrec(int(a.P)); o++ {
		if a.Mask&bit(o) != 0 {
			k := key(int(a.P), o)
			if tpOf(k) != tp {
				continue
			}
			any = true
			s.Rows[k]++
			if s.Rows[k] > 1 {
				v = fmt.Sprintf("I2: two rows of key %c", 'a'+k)
			}
		}
	}
	if any {
		s.push(tp, t)
	}
	return v
}

// landView writes the rows of the view, which has a window of its own.
func (s *State) landView(a *Att) string {
	t := tok(int(a.P), int(a.F), int(a.L), int(a.Mask))
	for i := 0; i < cfg.Win; i++ {
		if s.VTok[i] == t {
			return ""
		}
	}
	v := ""
	for o := 0; o < nrec(int(a.P)); o++ {
		if a.Mask&bit(o) != 0 {
			k := key(int(a.P), o)
			s.VRows[k]++
			if s.VRows[k] > 1 {
				v = fmt.Sprintf("I2: the view counts key %c twice", 'a'+k)
			}
		}
	}
	s.pushView(t)
	return v
}
func (s *State) pushView(t uint16) {
	if cfg.Win == 2 {
		s.VTok[1] = s.VTok[0]
	}
	s.VTok[0] = t
	s.VCnt++
}

func (s *State) addAtt(a Att) bool {
	for i := range s.A {
		if s.A[i].St == 0 {
			s.A[i] = a
			return true
		}
	}
	return false
}

func (s *State) finished(t uint16) bool {
	for _, x := range s.Log {
		if x == t {
			return true
		}
	}
	return false
}
func (s *State) logFinish(t uint16) {
	if s.finished(t) {
		return
	}
	for i := range s.Log {
		if s.Log[i] == 0 {
			s.Log[i] = t
			return
		}
	}
}

func (n *gen) attempts() {
	s0 := n.s0
	for x := range s0.A {
		a := s0.A[x]
		if a.St == 0 {
			continue
		}
		nm, who := "", "of the gone client"
		if labels {
			nm = fmt.Sprintf("insert %s rows %s", rn(int(a.P), int(a.F), int(a.L)), maskS(a.Mask))
			if a.Cl > 0 {
				who = fmt.Sprintf("of S%d", a.Cl-1)
			}
		}
		if a.St == 1 {
			s := *s0
			s.A[x].St = 2
			s.A[x].Age = 0
			n.add(s, false, "", "%s %s reaches the server", nm, who)
		}
		if a.St == 2 {
			if a.Mask&cfg.Poison[a.P] != 0 {
				n.dataError(x, nm, who)
				continue
			}
			if cfg.Views {
				n.landWithView(x, nm, who)
			} else {
				n.landParts(x, nm, who)
			}
		}
		if a.Cl == 0 {
			s := *s0
			s.A[x] = Att{}
			if !cfg.Views || a.Land == 0 { // with views only a server crash leaves half an insert
				n.add(s, false, "", "%s %s never lands", nm, who)
			}
		} else if s0.B.Amb > 0 {
			s := *s0
			s.B.Amb--
			s.giveUp(x)
			n.add(s, true, "", "AMBIGUOUS: S%d gives up on %s", a.Cl-1, nm)
		}
	}
}

// giveUp: the client no longer knows how the statement ends.
func (s *State) giveUp(x int) {
	a := s.A[x]
	s.A[x].Cl = 0
	w := &s.W[a.Cl-1][a.P]
	if a.X == 1 {
		if cfg.Deadline {
			w.XS, w.XW = 4, 0
		} else {
			w.XS = 1
		}
	} else if cfg.Deadline {
		w.Step, w.Rec, w.Wait = sOver, 1, 0
	} else {
		w.Step = sCheck
	}
}

// settleAtt: the client reads the acknowledgement.
func (s *State) settleAtt(a Att) {
	if a.Cl == 0 {
		return
	}
	w := &s.W[a.Cl-1][a.P]
	if a.X == 1 {
		w.XS = 0
		for o := 0; o < nrec(int(a.P)); o++ {
			if a.Mask&bit(o) != 0 {
				w.V[o] = vOwn
			}
		}
		w.X &^= a.Mask
	} else {
		w.Step = sDone
	}
}

func (n *gen) landParts(x int, nm, who string) {
	a := n.s0.A[x]
	ntp := 1
	if cfg.Split {
		ntp = 2
	}
	for tp := 0; tp < ntp; tp++ {
		if a.Land&bit(tp) != 0 {
			continue
		}
		need := false
		for o := 0; o < nrec(int(a.P)); o++ {
			if a.Mask&bit(o) != 0 && tpOf(key(int(a.P), o)) == tp {
				need = true
			}
		}
		s := *n.s0
		v := ""
		if need {
			v = s.land(&a, tp)
		}
		s.A[x].Land |= bit(tp)
		full := s.A[x].Land == uint8(1<<uint(ntp)-1)
		if !need && !full {
			continue
		}
		if !full { // other pieces needed?
			rest := false
			for o := 0; o < nrec(int(a.P)); o++ {
				t := tpOf(key(int(a.P), o))
				if a.Mask&bit(o) != 0 && s.A[x].Land&bit(t) == 0 {
					rest = true
				}
			}
			full = !rest
		}
		if full {
			s.A[x] = Att{}
			s.settleAtt(a)
		}
		n.add(s, false, v, "%s %s lands (part %d, full=%v)", nm, who, tp, full)
	}
}

// landWithView: the table first, the view after (or either first, AnyOrder).
func (n *gen) landWithView(x int, nm, who string) {
	a := n.s0.A[x]
	for b, what := range []string{"table", "view"} {
		if a.Land&bit(b) != 0 || b == 1 && a.Land == 0 && !cfg.AnyOrder {
			continue
		}
		s := *n.s0
		var v string
		if b == 0 {
			v = s.land(&a, 0)
		} else {
			v = s.landView(&a)
		}
		s.A[x].Land |= bit(b)
		if s.A[x].Land == 3 {
			s.A[x] = Att{}
			s.logFinish(tok(int(a.P), int(a.F), int(a.L), int(a.Mask)))
			s.settleAtt(a)
		}
		n.add(s, false, v, "%s %s lands in the %s", nm, who, what)
	}
}

// serverCrash kills what runs, also between table and view. query_log may lose
// what was not flushed.
func (n *gen) serverCrash() {
	if n.s0.B.Srv == 0 {
		return
	}
	for _, lost := range []bool{false, true} {
		s := *n.s0
		s.B.Srv--
		s.Rst++
		for x := range s.A {
			if s.A[x].St == 0 {
				continue
			}
			if s.A[x].Cl > 0 {
				s.giveUp(x)
			}
			s.A[x] = Att{}
		}
		if lost {
			if s.Log == ([4]uint16{}) {
				continue
			}
			s.Log = [4]uint16{}
		}
		n.add(s, true, "", "SERVER CRASH (query_log lost: %v)", lost)
	}
}

// dataError: the server refuses the block; the offending rows are dead-lettered.
func (n *gen) dataError(x int, nm, who string) {
	s := *n.s0
	a := s.A[x]
	s.A[x] = Att{}
	if a.Cl > 0 {
		w := &s.W[a.Cl-1][a.P]
		for o := 0; o < nrec(int(a.P)); o++ {
			if a.Mask&cfg.Poison[a.P]&bit(o) != 0 {
				w.V[o] = vDead
				s.DL[a.P] |= bit(o)
				w.X &^= bit(o)
				if cfg.Release {
					w.Rel |= bit(o)
				}
				if cfg.Interval {
					for h := range w.Lo {
						if h == 0 || cfg.Groups {
							w.Lo[h] = uint8(o + 1)
						}
					}
				}
			}
		}
		s.judgeAnew(w, a)
	}
	n.add(s, false, "", "%s %s: data error; offending rows dead-lettered", nm, who)
}

// judgeAnew is F4 for the rows of the worker whose insert was refused.
func (s *State) judgeAnew(w *Worker, a Att) {
	if a.X == 1 {
		w.XS = 0
		if !cfg.Recl {
			return
		}
		for o := int(w.PF); o < int(w.Pos); o++ {
			for d := int(w.PF); d < int(w.Pos); d++ {
				if w.V[o] != vDupS || w.V[d] != vDead || key(int(a.P), o) != key(int(a.P), d) {
					continue
				}
				c := s.C[key(int(a.P), o)]
				if c >= 0 && c != ownTable {
					w.V[o], w.O[o] = vDup, c
				}
			}
		}
		return
	}
	if !cfg.Recl {
		w.Step = sRead
		return
	}
	for o := int(w.Pos); o < int(w.Last); o++ {
		if w.V[o] != vDead {
			w.V[o] = vNone
		}
	}
	w.Step, w.Rec = sClaim, 1
	s.endAttempt(int(a.Cl)-1, int(a.P))
}
