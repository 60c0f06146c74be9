package main

import "fmt"

// step is one worker about to move: sink i, partition p, group g.
type step struct {
	*gen
	s0         *State
	w0         Worker
	i, p, g, N int
}

func (n *gen) worker(i, p, g int) {
	t := &step{gen: n, s0: n.s0, w0: n.s0.W[i][p], i: i, p: p, g: g, N: nrec(p)}
	if t.w0.Step == sStop {
		return
	}
	if labels {
		n.pre = fmt.Sprintf("S%d ", i)
	}
	defer func() { n.pre = "" }()
	switch t.w0.Step {
	case sFetch:
		t.fetch()
	case sJoin:
		t.join()
	case sIdle:
		t.idle()
	case sClaim:
		if !t.claim() {
			break
		}
		t.verdicts()
	case sOver:
		if !t.running() && (!cfg.Deadline || t.w0.Wait >= units()) {
			s := *t.s0
			s.W[i][p].Step = sRead
			t.add(s, false, "", "sees no running attempt of %s", rn(p, int(t.w0.Pos), int(t.w0.Last)))
		}
	case sRead:
		if cfg.Views {
			t.readWithViews()
		} else {
			t.read()
		}
	case sIntent:
		t.intent()
	case sCheck:
		t.check()
	case sRenew:
		t.renew()
	case sSend:
		t.send()
	case sDone:
		t.done()
	}
	t.gate()
	t.release()
	if w0 := t.w0; w0.X != 0 && (w0.Step == sIdle || w0.Step == sIntent || w0.Step == sClaim) {
		t.extra()
	}
}

func (t *step) fenced() bool {
	if cfg.CurGen {
		return t.s0.Mem[t.i] != 1
	}
	return t.s0.Mem[t.i] != 1 || t.w0.Gen != t.s0.Gen[t.g]
}

// dropAll: the sink learns that it has lost its partitions.
func (t *step) dropAll(why string) {
	s := *t.s0
	s.Mem[t.i] = 1
	s.dropProc(t.i)
	t.add(s, false, "", "%s", why)
}

func (t *step) commit(k KP, then func(s *State, w *Worker), f string, a ...any) {
	i, p, g := t.i, t.p, t.g
	if t.fenced() {
		t.dropAll(fmt.Sprintf("commit of P%d is fenced: drops its workers, rejoins", p))
		return
	}
	s := *t.s0
	if cfg.NoIntent {
		k = KP{Off: k.Off}
	}
	s.K[g][p] = k
	v := s.i1(p, int(k.Off))
	then(&s, &s.W[i][p])
	what := ""
	if labels {
		what = fmt.Sprintf(f, a...)
	}
	t.add(s, false, v, "commits P%d off=%d%s", p, k.Off, what)
	if t.s0.B.PC > 0 && t.s0.PC.St == 0 {
		s := *t.s0
		s.B.PC--
		s.PC.St, s.PC.G, s.PC.P, s.PC.K, s.PC.Gen = 1, uint8(g), uint8(p), k, s.Gen[g]
		t.add(s, true, "", "commit P%d off=%d%s times out (may land late); will retry", p, k.Off, what)
	}
}

// running: an attempt of this partition and group is visible on the server.
func (t *step) running() bool {
	for _, a := range t.s0.A {
		if a.St == 2 && int(a.G) == t.g && int(a.P) == t.p {
			return true
		}
	}
	return false
}

func (t *step) idle() {
	w0, p, g := t.w0, t.p, t.g
	room := cfg.Bound == 0 || !cfg.BoundFirst || int(w0.NB) < cfg.Bound
	for e := int(w0.Pos) + 1; room && e <= t.N && e-int(w0.Pos) <= cfg.MaxCut; e++ {
		s := *t.s0
		w := &s.W[t.i][p]
		w.Last, w.Step, w.Rec = uint8(e), sClaim, 0
		w.EM, w.C0, w.V0, w.R0 = 0, 0, 0, 0
		if cfg.Bound > 0 {
			w.NB++
		}
		t.add(s, false, "", "cuts batch %s", rn(p, int(w.Pos), e))
	}
	if w0.PF < w0.Pos && w0.gateOpen() {
		t.commit(KP{Off: w0.Pos}, func(s *State, w *Worker) {
			w.PF = w.Pos
			w.NB = 0
			if cfg.WMAfterGate || cfg.Groups {
				s.publish(w, g, p, true)
			}
		}, " (idle, no intent)")
	}
	if cfg.IdleC && w0.PF == w0.Pos && t.s0.K[g][p] != (KP{Off: w0.Pos}) {
		t.commit(KP{Off: w0.Pos}, func(s *State, w *Worker) { w.NB = 0 }, " (idle, again)")
	}
}

// voidOf: the hash-tag groups whose epoch changed since the verdicts of [from,Last).
func (t *step) voidOf() uint8 {
	var m uint8
	if !cfg.Groups {
		if t.w0.Ep[0] != t.s0.Ep[0] {
			m = 1
		}
		return m
	}
	for o := int(t.w0.Pos); o < int(t.w0.Last); o++ {
		h := hg(key(t.p, o))
		if cfg.GrpEp && t.w0.Ep[h] != t.s0.Ep[h] {
			m |= bit(h)
		}
	}
	return m
}

// afresh voids verdicts of the batch and claims it again.
func (t *step) afresh(s *State, hs uint8) {
	w := &s.W[t.i][t.p]
	for o := int(w.Pos); o < int(w.Last); o++ {
		if w.V[o] != vDead && hs&bit(hg(key(t.p, o))) != 0 {
			w.V[o] = vNone
			if cfg.R {
				w.Nc &^= bit(o)
			}
		}
	}
	w.Rec, w.Step = 1, sClaim
	s.endAttempt(t.i, t.p)
}

func (t *step) intent() {
	w0, p, g := t.w0, t.p, t.g
	if v := t.voidOf(); cfg.Quar && v != 0 && !cfg.ClaimDl {
		quar := uint8(0)
		for h := range t.s0.Quar {
			if v&bit(h) != 0 {
				quar |= t.s0.Quar[h]
			}
		}
		if quar == 0 {
			s := *t.s0
			t.afresh(&s, v)
			w := &s.W[t.i][p]
			for h := range w.Ep {
				if v&bit(h) != 0 {
					w.Ep[h], w.Lo[h] = s.Ep[h], w.Pos
				}
			}
			t.add(s, false, "", "sees the new epoch: claims %s afresh", rn(p, int(w.Pos), int(w.Last)))
		}
		return
	}
	rows := w0.mask()
	to := uint8(sCheck)
	if w0.Miss == 0 {
		to = sDone
		if cfg.Empty {
			s := *t.s0
			s.W[t.i][p].Step = sDone
			t.add(s, false, "", "%s has nothing to send", rn(p, int(w0.Pos), int(w0.Last)))
			return
		}
	} else if cfg.ClaimDl && w0.Auth == 0 {
		s := *t.s0
		s.W[t.i][p].Step = sRenew
		t.add(s, false, "", "the deadline of P%d is over: renews", p)
		return
	}
	k := KP{Int: 1, Last: w0.Last, Mask: rows}
	if cfg.Views {
		k.Mask, k.C0, k.V0, k.R0 = w0.Miss, w0.C0, w0.V0, w0.R0
		if k.C0 == 0 {
			k.C0, k.V0, k.R0 = t.s0.Cnt+1, t.s0.VCnt+1, t.s0.Rst+1
		}
	}
	note := func(w *Worker) {
		if !cfg.ClaimDl {
			w.Auth = units()
		}
		w.Step = to
		if cfg.Views {
			w.EM, w.C0, w.V0, w.R0 = k.Mask, k.C0, k.V0, k.R0
		}
	}
	if w0.gateOpen() {
		k.Off = w0.Pos
		t.commit(k, func(s *State, w *Worker) {
			w.PF = w.Pos
			if cfg.Bound > 0 {
				w.NB = 1
			}
			note(w)
			if cfg.WMAfterGate {
				s.publish(w, g, p, true)
			}
		}, " intent(..%d rows %s)", w0.Last-1, maskS(k.Mask))
	} else if cfg.Extend && w0.XS == 0 {
		if cfg.Bound > 0 && !cfg.BoundFirst && int(w0.NB) > cfg.Bound {
			return // the list is full
		}
		k.Off = w0.PF
		t.commit(k, func(s *State, w *Worker) { note(w) }, " extended intent(..%d rows %s)", w0.Last-1, maskS(k.Mask))
	}
}

func (t *step) check() {
	s := *t.s0
	w := &s.W[t.i][t.p]
	switch {
	case t.w0.Auth > 0:
		w.Step = sSend
		t.add(s, false, "", "checks: intent of P%d is recent", t.p)
	case cfg.ClaimDl:
		w.Step = sRenew
		t.add(s, false, "", "the deadline of P%d is over: renews", t.p)
	default:
		w.Step = sIntent
		t.add(s, false, "", "intent of P%d not recent: commits again", t.p)
	}
}

// renew claims again with the old and a new nonce.
func (t *step) renew() {
	p := t.p
	if cfg.FenceCl && t.s0.Run[t.g][p] != t.w0.AGen {
		t.dropAll("its renewal is refused (a later assignment): drops its workers, rejoins")
		return
	}
	for o := int(t.w0.Pos); o < int(t.w0.Last); o++ {
		if t.s0.Quar[hg(key(p, o))] > 0 {
			return
		}
	}
	s := *t.s0
	w := &s.W[t.i][p]
	if v := t.voidOf(); v != 0 {
		t.afresh(&s, v)
		t.add(s, false, "", "renewal meets a new epoch: claims %s afresh", rn(p, int(w.Pos), int(w.Last)))
		return
	}
	m := w.mask()
	if cfg.Renew && m&^w.Nc != 0 {
		t.afresh(&s, 3)
		t.add(s, false, "", "renewal finds another nonce: claims %s afresh", rn(p, int(w.Pos), int(w.Last)))
		return
	}
	s.endAttempt(t.i, p)
	w.Begun = 2
	for o := int(w.Pos); o < int(w.Last); o++ {
		if m&bit(o) != 0 {
			s.touch(key(p, o), t.i, p, o)
		}
	}
	w.Nc |= m
	w.Auth, w.Step = units(), sIntent
	t.add(s, false, "", "renews the claims %s of P%d", maskS(m), p)
}

func (t *step) send() {
	s := *t.s0
	w := &s.W[t.i][t.p]
	if cfg.Deadline && w.Auth == 0 {
		w.Step = sIntent
		t.add(s, false, "", "sends, but the server refuses: past the deadline")
		return
	}
	a := Att{St: 1, G: uint8(t.g), P: uint8(t.p), Mask: w.Miss, Cl: uint8(t.i + 1), F: w.Pos, L: w.Last}
	if cfg.Deadline {
		a.Age = w.Auth
	}
	if s.addAtt(a) {
		w.Step = sSent
		t.add(s, false, "", "sends insert %s rows %s", rn(t.p, int(w.Pos), int(w.Last)), maskS(w.Miss))
	}
}

func (t *step) done() {
	g, p := t.g, t.p
	s := *t.s0
	w := &s.W[t.i][p]
	for o := int(w.Pos); o < int(w.Last); o++ {
		if w.V[o] == vNew || w.V[o] == vMine {
			w.V[o] = vOwn
		}
	}
	w.Pos = w.Last
	w.Step, w.Rec, w.Auth, w.Miss, w.Vf = sIdle, 0, 0, 0, 0
	w.EM, w.C0, w.V0, w.R0 = 0, 0, 0, 0
	if cfg.R {
		s.endAttempt(t.i, p)
		w.Wait = 0
	}
	if cfg.WMAfterGate {
		t.add(s, false, "", "P%d batch inserted", p)
		return
	}
	s.publish(w, g, p, false)
	w.Tch = 0
	t.add(s, false, "", "P%d batch settled; acked(G%d,P%d)=[%d,%d)", p, g, p, s.Lo[0][g][p], s.Hi[0][g][p])
	if t.s0.B.Lose > 0 { // watermark update lost
		s2 := s
		s2.B.Lose--
		for h := range s2.Lo {
			s2.Lo[h][g][p], s2.Hi[h][g][p] = t.s0.Lo[h][g][p], t.s0.Hi[h][g][p]
		}
		t.add(s2, true, "", "P%d batch settled; the acked update is LOST in Redis", p)
	}
}
