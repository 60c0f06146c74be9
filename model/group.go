package main

// ---- the consumer group: assignment, crash, zombie, rebalance, operator, delayed commits

func (n *gen) assign() {
	s0 := n.s0
	for g := 0; g < MG; g++ {
		if g == 1 && !cfg.Replay {
			continue
		}
		for p := 0; p < cfg.NP; p++ {
			if s0.Own[g][p] >= 0 {
				continue
			}
			for i := 0; i < MS; i++ {
				if grp(i) == g && s0.Mem[i] == 1 {
					s := *s0
					s.Own[g][p] = int8(i)
					if cfg.ZKeep && s.W[i][p].Has == 1 {
						s.dropW(i, p)
					}
					if s.W[i][p].Has == 0 {
						s.W[i][p] = newWorker(s.Gen[g])
						n.add(s, false, "", "S%d is assigned P%d (gen %d)", i, p, s.Gen[g])
					}
				}
			}
		}
	}
}

func newWorker(generation uint8) Worker {
	w := Worker{Has: 1, Gen: generation, Step: sFetch}
	if cfg.R {
		w.AGen = generation
	}
	return w
}

func (n *gen) restart(i int) {
	s := *n.s0
	s.Mem[i] = 1
	n.add(s, false, "", "S%d restarts and joins", i)
}

// regen gives the new generation to the workers whose partition stays assigned.
func (s *State) regen(g, p, but int) {
	for j := 0; j < MS; j++ {
		if j != but && grp(j) == g && s.W[j][p].Has == 1 && s.Mem[j] == 1 && s.Own[g][p] == int8(j) {
			s.W[j][p].Gen = s.Gen[g]
		}
	}
}

func (n *gen) membership(i, g int) {
	s0 := n.s0
	if s0.Mem[i] == 2 { // zombie notices
		s := *s0
		s.Mem[i] = 1
		if !cfg.ZKeep {
			s.dropProc(i)
		}
		n.add(s, false, "", "zombie S%d notices, drops its workers, rejoins", i)
	}
	if s0.B.Crash > 0 {
		s := *s0
		s.B.Crash--
		s.dropProc(i)
		s.Mem[i] = 0
		s.Gen[g]++
		for p := 0; p < cfg.NP; p++ {
			if s.Own[g][p] == int8(i) {
				s.Own[g][p] = -1
			}
			s.regen(g, p, i)
		}
		n.add(s, true, "", "CRASH of S%d", i)
	}
	if s0.B.Zom > 0 && s0.Mem[i] == 1 {
		has := false
		for p := 0; p < cfg.NP; p++ {
			if s0.W[i][p].Has == 1 {
				has = true
			}
		}
		if has {
			s := *s0
			s.B.Zom--
			s.Mem[i] = 2
			s.Gen[g]++
			for p := 0; p < cfg.NP; p++ {
				if s.Own[g][p] == int8(i) {
					s.Own[g][p] = -1
				}
				if !cfg.ClaimDl {
					s.W[i][p].Auth = 0
				}
				s.regen(g, p, i)
			}
			n.add(s, true, "", "S%d is paused and thrown out of the group (zombie)", i)
		}
	}
	if s0.B.Reb > 0 && s0.Mem[i] == 1 {
		n.rebalance(i, g)
	}
}

func (n *gen) rebalance(i, g int) {
	s0 := n.s0
	for p := 0; p < cfg.NP; p++ {
		if s0.Own[g][p] != int8(i) {
			continue
		}
		for j := 0; j < MS; j++ {
			if j == i || grp(j) != g || s0.Mem[j] != 1 || j >= cfg.Sinks && g == 0 || s0.W[j][p].Has == 1 {
				continue
			}
			s := *s0
			s.B.Reb--
			s.Gen[g]++
			if !cfg.NoDrain {
				s.dropW(i, p)
			}
			for q := 0; q < cfg.NP; q++ {
				but := -1
				if q == p {
					but = i
				}
				s.regen(g, q, but)
			}
			s.Own[g][p] = int8(j)
			s.W[j][p] = newWorker(s.Gen[g])
			n.add(s, true, "", "rebalance: P%d moves S%d -> S%d", p, i, j)
		}
	}
}

// operator resets offsets while the group does not hold the partition.
func (n *gen) operator() {
	s0 := n.s0
	for p := 0; p < cfg.NP; p++ {
		busy := false
		for i := 0; i < MS; i++ {
			if grp(i) == 0 && s0.W[i][p].Has == 1 {
				busy = true
			}
		}
		if busy || s0.Own[0][p] >= 0 {
			continue
		}
		if s0.B.Skip > 0 && int(s0.K[0][p].Off) < nrec(p) {
			s := *s0
			s.B.Skip--
			o := s.K[0][p].Off
			s.DL[p] |= bit(int(o)) // the operator took responsibility for the skipped record itself
			s.K[0][p] = KP{Off: o + 1}
			n.add(s, true, "", "operator skips P%d@%d (offset reset forward)", p, o)
		}
		if s0.B.Back > 0 && s0.K[0][p].Off > 0 {
			s := *s0
			s.B.Back--
			s.K[0][p] = KP{Off: 0}
			if cfg.R {
				s.DL[p] = 0 // the records count again
			}
			n.add(s, true, "", "operator resets P%d to offset 0", p)
		}
	}
}

func (n *gen) staleCommit() {
	s0 := n.s0
	if s0.PC.St != 1 {
		return
	}
	s := *s0
	c := s.PC
	s.PC = State{}.PC
	if c.Gen == s.Gen[c.G] {
		s.K[c.G][c.P] = c.K
		n.add(s, false, s.i1(int(c.P), int(c.K.Off)), "the delayed commit P%d off=%d lands", c.P, c.K.Off)
	} else {
		n.add(s, false, "", "the delayed commit is fenced")
	}
	s = *s0
	s.PC = State{}.PC
	n.add(s, false, "", "the delayed commit is lost")
}
