package main

import "fmt"

// ---- the dedup store: claims, acked, loss, expiry, late calls

func (s *State) ordDel(k int) {
	j := 0
	var n [MK]int8
	for i := range n {
		n[i] = -1
	}
	for _, x := range s.Ord {
		if x >= 0 && int(x) != k {
			n[j] = x
			j++
		}
	}
	s.Ord = n
}
func (s *State) setClaim(k int, id int8) {
	s.C[k] = id
	if cfg.IncFix && !cfg.R {
		s.Inc[k]++
	}
	s.ordDel(k)
	for i := range s.Ord {
		if s.Ord[i] < 0 {
			s.Ord[i] = int8(k)
			break
		}
	}
}
func (s *State) delClaim(k int) {
	s.C[k] = -1
	s.Fr[k] = 0
	s.ordDel(k)
	s.touch(k, -1, 0, 0)
}

// touch writes a new nonce into the claim of k: everyone else's copy is stale
// from now on. Only "is my nonce still there" is kept, so nonces need no counter.
func (s *State) touch(k, i, p, o int) {
	if !cfg.R {
		if cfg.IncFix && i >= 0 {
			s.Inc[k]++
		}
		return
	}
	for j := range s.W {
		for q := 0; q < cfg.NP; q++ {
			w := &s.W[j][q]
			if w.Has == 0 {
				continue
			}
			for x := 0; x < nrec(q); x++ {
				if key(q, x) == k {
					w.Nc &^= bit(x)
				}
			}
			if w.Sus > 0 && key(q, int(w.Sus)-1) == k && cfg.IncFix {
				w.SusN = 0
			}
		}
	}
	if s.Late.St == 1 {
		for x := int(s.Late.F); x < int(s.Late.L); x++ {
			if key(int(s.Late.P), x) == k {
				s.Late.Nc &^= bit(x)
			}
		}
	}
	if i >= 0 {
		s.W[i][p].Nc |= bit(o)
	}
}

// settled: the owner is covered by its worker's acked.
func (s *State) settled(k int, id int8) bool {
	if id == ownTable {
		return true
	}
	if id == ownAsk || id == ownGone {
		return false
	}
	if id >= ownTaken {
		if cfg.Taken {
			return false
		}
		id -= ownTaken
	}
	g, p, o := oget(id)
	h := ackedOf(k)
	if cfg.WMGlobal {
		hi := s.Hi[h][0][p]
		if s.Hi[h][1][p] > hi {
			hi = s.Hi[h][1][p]
		}
		return o < int(hi)
	}
	if cfg.Interval {
		return o >= int(s.Lo[h][g][p]) && o < int(s.Hi[h][g][p])
	}
	return o < int(s.Hi[h][g][p])
}

// ackedOf is the hash-tag group whose copy of acked speaks for the key.
func ackedOf(k int) int {
	if cfg.Groups && !cfg.GrpAcked {
		return 0
	}
	return hg(k)
}

// publish acked: [lo, Pos) to the groups that the batch touched, to all when idle.
func (s *State) publish(w *Worker, g, p int, all bool) {
	if !cfg.Interval {
		if w.Pos > s.Hi[0][g][p] {
			s.Hi[0][g][p] = w.Pos
		}
		return
	}
	if cfg.R && cfg.FencePub && s.Run[g][p] != w.AGen {
		return
	}
	for h := 0; h < MH; h++ {
		if h > 0 && !(cfg.Groups && cfg.GrpAcked) || s.Quar[h] > 0 {
			continue
		}
		if cfg.Groups && !all && w.Tch&bit(h) == 0 {
			continue
		}
		if cfg.PubEp && w.Ep[h] != s.Ep[h] {
			w.Lo[h] = w.Pos
			continue
		}
		if s.Hi[h][g][p] < w.Lo[h] || s.Lo[h][g][p] != w.Lo[h] {
			s.Lo[h][g][p] = w.Lo[h]
		}
		s.Hi[h][g][p] = w.Pos
	}
}

// lostIn raises the epoch of the hash-tag group h and starts its quarantine.
func (s *State) lostIn(h int) {
	s.Ep[h]++
	if cfg.R { // acked of another epoch counts for nothing
		s.Lo[h], s.Hi[h] = [MG][MP]uint8{}, [MG][MP]uint8{}
	}
	if cfg.Quar {
		s.Quar[h], s.Verify[h] = units(), 1
		return
	}
	for i := range s.Reas {
		s.Reas[i] = 1
	}
}

func (n *gen) storeLoss() {
	s0 := n.s0
	if s0.B.Lose > 0 {
		c := 0
		for c < MK && s0.Ord[c] >= 0 {
			c++
		}
		for x := 1; x <= c; x++ {
			s := *s0
			s.B.Lose--
			for j := c - x; j < c; j++ {
				k := int(s0.Ord[j])
				s.C[k] = -1
				s.Fr[k] = 0
				s.Ord[j] = -1
				s.touch(k, -1, 0, 0)
			}
			s.lostIn(0)
			n.add(s, true, "", "REDIS failover loses the last %d claim(s)", x)
		}
	}
	if s0.B.Flush == 0 {
		return
	}
	for h := 0; h < MH; h++ {
		if h > 0 && !cfg.Groups {
			continue
		}
		s := *s0
		s.B.Flush--
		for k := range s.C {
			if cfg.Groups && hg(k) != h {
				continue
			}
			s.C[k] = -1
			s.Fr[k] = 0
			s.ordDel(k)
			s.touch(k, -1, 0, 0)
		}
		s.Lo[h], s.Hi[h] = [MG][MP]uint8{}, [MG][MP]uint8{}
		s.Verify[h] = 1
		s.lostIn(h)
		n.add(s, true, "", "REDIS flush (hash-tag group %d)", h)
	}
}

func (n *gen) warm() {
	for h := range n.s0.Verify {
		if n.s0.Verify[h] == 0 || n.s0.Quar[h] > 0 || cfg.NoWarm {
			continue
		}
		s := *n.s0
		s.Verify[h] = 0
		for k := range s.C {
			if s.C[k] < 0 && s.Rows[k] > 0 && hg(k) == h {
				s.C[k] = ownTable
			}
		}
		n.add(s, false, "", "warm: claims rebuilt from the table, verify mode ends")
	}
}

// expire: a claim falls out of the horizon. That takes a hundred D, so nothing
// that was sent before is still under way.
func (n *gen) expire() {
	if n.s0.B.Exp == 0 {
		return
	}
	for x := range n.s0.A {
		if n.s0.A[x].St != 0 {
			return
		}
	}
	for i := range n.s0.W {
		for p := range n.s0.W[i] {
			if w := n.s0.W[i][p]; w.Auth > 0 || w.XA > 0 {
				return
			}
		}
	}
	for k := range n.s0.C {
		if n.s0.C[k] < 0 {
			continue
		}
		s := *n.s0
		s.B.Exp--
		s.delClaim(k)
		s.Cold[k] = 1
		n.add(s, true, "", "the claim of %c expires", 'a'+k)
	}
}

// lateClaim: a copy of a claim call that was re-sent arrives after all.
func (n *gen) lateClaim() {
	if n.s0.Late.St != 1 {
		return
	}
	s := *n.s0
	c := s.Late
	s.Late = Late{}
	n.add(s, false, "", "the late copy of the claim call of S%d is lost", c.I)
	s = *n.s0
	g, p := int(c.G), int(c.P)
	w := &s.W[c.I][p]
	refused := cfg.FenceCl && s.Run[g][p] != c.AGen || cfg.CallOnce && c.Ans == 1
	for h := range s.Ep {
		if c.Ep[h] != s.Ep[h] || s.Quar[h] > 0 {
			refused = true
		}
	}
	txt := ""
	if !refused {
		for o := int(c.F); o < int(c.L); o++ {
			k := key(p, o)
			i := -1
			if c.Same == 1 {
				i = int(c.I)
			}
			me := oid(g, p, o)
			switch cl := s.C[k]; {
			case cl < 0 || cl == ownGone:
				s.setClaim(k, newOwner(me, cl, s.Cold[k] == 1))
				s.Fr[k] = 1
				if cfg.VerFresh && s.Verify[hg(k)] == 1 {
					s.Fr[k] = 0
				}
				s.touch(k, i, p, o)
				if labels {
					txt += fmt.Sprintf(" %d:NEW", o)
				}
			case cl == me || cl == me+ownTaken:
				if c.Same == 1 && w.Nc&bit(o) != 0 || c.Same == 0 && c.Nc&bit(o) != 0 {
					break // its own nonce
				}
				if cfg.FreshClr {
					s.Fr[k] = 0
				}
				s.touch(k, i, p, o)
				if labels {
					txt += fmt.Sprintf(" %d:MINE", o)
				}
			}
		}
	}
	s.Late = Late{}
	n.add(s, false, "", "the late copy of the claim call of S%d for P%d lands (refused: %v)%s", c.I, p, refused, txt)
}
