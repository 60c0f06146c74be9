package main

func base() Cfg {
	c := Cfg{NP: 1, Sinks: 2, Win: 1, MaxCut: 2, MaxSt: 4000000, Atomic: true, Live: true}
	c.Keys[0] = []int{0, 1}
	return c
}
func two() Cfg {
	c := base()
	c.NP = 2
	c.Keys[0] = []int{0, 1}
	c.Keys[1] = []int{0}
	return c
}
func fixed(c Cfg) Cfg {
	c.Deadline, c.MineRead, c.Interval, c.Extend, c.Passed, c.IncFix, c.Quar, c.Taken = true, true, true, true, true, true, true, true
	c.VerClaim, c.OwnFwd, c.Recl, c.IdleC, c.GateClaim, c.PubEp = true, true, true, true, true, true
	c.Name = "fix-" + c.Name
	return c
}
func mk(name string, c Cfg, f func(c *Cfg)) Cfg {
	c.Name = name
	f(&c)
	return c
}
func worlds() []Cfg {
	var w []Cfg
	both := func(c Cfg) {
		w = append(w, c, fixed(c))
	}
	// baseline, benign
	both(mk("w0-crash", base(), func(c *Cfg) { c.B.B.Crash = 1 }))
	both(mk("w0-two-crash", two(), func(c *Cfg) { c.B.B.Crash = 1 }))
	both(mk("w1-crash2-amb-for", base(), func(c *Cfg) { c.B.B.Crash = 2; c.B.B.Amb = 1; c.B.B.For = 1 }))
	both(mk("w1-amb-for", base(), func(c *Cfg) { c.B.B.Amb = 1; c.B.B.For = 1; c.Sinks = 1 }))
	both(mk("w1-crash-for", base(), func(c *Cfg) { c.B.B.Crash = 1; c.B.B.For = 1 }))
	both(mk("w1-crash-split", base(), func(c *Cfg) { c.B.B.Crash = 1; c.Split = true }))
	both(mk("w1-crash2-split", base(), func(c *Cfg) { c.B.B.Crash = 2; c.Split = true; c.Win = 2 }))
	both(mk("w1-zombie", base(), func(c *Cfg) { c.B.B.Zom = 1 }))
	both(mk("w1-zombie-w2", base(), func(c *Cfg) { c.B.B.Zom = 1; c.Win = 2 }))
	both(mk("w1-zombie-split-w2", base(), func(c *Cfg) { c.B.B.Zom = 1; c.B.B.Amb = 1; c.Split = true; c.Win = 2 }))
	both(mk("w1-zombie-for", base(), func(c *Cfg) { c.B.B.Zom = 1; c.B.B.For = 1 }))
	both(mk("w1-zombie-curgen", base(), func(c *Cfg) { c.B.B.Zom = 1; c.CurGen = true; c.Win = 2 }))
	both(mk("w1-reb", base(), func(c *Cfg) { c.B.B.Reb = 1; c.B.B.Crash = 1; c.Win = 2 }))
	both(mk("w1-stalecommit", base(), func(c *Cfg) { c.B.B.PC = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0, 1, 2}; c.Win = 2 }))
	both(mk("w1-back", base(), func(c *Cfg) { c.B.B.Back = 1; c.B.B.Crash = 1 }))
	both(mk("w1-skip", base(), func(c *Cfg) { c.B.B.Skip = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0, 0} }))
	// two partitions, gate
	both(mk("w2-gate", two(), func(c *Cfg) { c.Win = 2 }))
	both(mk("w2-gate-shards", two(), func(c *Cfg) {
		c.Atomic = false
		c.Keys[0] = []int{1, 0}
		c.Keys[1] = []int{0, 1}
		c.Sinks = 1
		c.Win = 2
	}))
	both(mk("w2-gate-shards-wmafter", two(), func(c *Cfg) {
		c.Atomic = false
		c.Keys[0] = []int{1, 0}
		c.Keys[1] = []int{0, 1}
		c.Sinks = 1
		c.Win = 2
		c.WMAfterGate = true
	}))
	both(mk("w2-gate-shards-crash", two(), func(c *Cfg) {
		c.Atomic = false
		c.Keys[0] = []int{1, 0}
		c.Keys[1] = []int{0, 1}
		c.Sinks = 1
		c.Win = 2
		c.B.B.Crash = 1
	}))
	both(mk("w2-gate-crash", two(), func(c *Cfg) { c.B.B.Crash = 1; c.Win = 2; c.Keys[1] = []int{1, 0} }))
	both(mk("w2-gate-reb", two(), func(c *Cfg) { c.B.B.Reb = 1; c.Win = 2; c.Keys[1] = []int{1, 0} }))
	both(mk("w2-skip", two(), func(c *Cfg) { c.B.B.Skip = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0}; c.Sinks = 1; c.Win = 2 }))
	both(mk("w2-poison", two(), func(c *Cfg) { c.Poison[0] = 1; c.Keys[0] = []int{0}; c.Sinks = 1; c.Win = 2 }))
	both(mk("w2-und", two(), func(c *Cfg) { c.B.B.Und = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0}; c.Sinks = 1; c.Win = 2 }))
	both(mk("w2-lose", two(), func(c *Cfg) { c.B.B.Lose = 1; c.Keys[0] = []int{0}; c.Win = 2 }))
	both(mk("w2-lose-crash", two(), func(c *Cfg) { c.B.B.Lose = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0}; c.Win = 2 }))
	both(mk("w2-flush", two(), func(c *Cfg) { c.B.B.Flush = 1; c.Keys[0] = []int{0}; c.Win = 2 }))
	both(mk("w2-flush-crash", two(), func(c *Cfg) { c.B.B.Flush = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0}; c.Win = 2 }))
	both(mk("w2-conflict", two(), func(c *Cfg) {
		c.B.B.Crash = 1
		c.Win = 2
		c.Keys[0] = []int{0, 1}
		c.FP[0] = []int{0, 0}
		c.Keys[1] = []int{0, 1}
		c.FP[1] = []int{1, 0}
	}))
	// replay
	both(mk("w3-replay", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Win = 2 }))
	both(mk("w3-replay-crash", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Win = 2; c.B.B.Crash = 1; c.Keys[0] = []int{0} }))
	both(mk("w3-replay-crash2", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Win = 2; c.B.B.Crash = 2; c.Keys[0] = []int{0} }))
	both(mk("w3-replay-crash2r", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Win = 2; c.B.B.Crash = 2; c.MaxSt = 12000000 }))
	// mutations
	both(mk("m-nointent", base(), func(c *Cfg) { c.B.B.Crash = 1; c.NoIntent = true; c.Win = 2 }))
	both(mk("m-nodigest", base(), func(c *Cfg) {
		c.Sinks = 1
		c.Replay = true
		c.NoDigest = true
		c.Win = 2
		c.B.B.Crash = 2
		c.Atomic = false
	}))
	both(mk("m-zkeep-curgen", base(), func(c *Cfg) { c.ZKeep = true; c.CurGen = true; c.B.B.Zom = 1; c.Win = 2; c.Keys[0] = []int{0, 1} }))
	both(mk("m-zkeep", base(), func(c *Cfg) { c.ZKeep = true; c.B.B.Zom = 1; c.Win = 2; c.Keys[0] = []int{0, 1} }))
	both(mk("m-nodrain-curgen", base(), func(c *Cfg) { c.NoDrain = true; c.CurGen = true; c.B.B.Reb = 1; c.Win = 2 }))
	both(mk("m-ownerless2", two(), func(c *Cfg) { c.Ownerless = true; c.Win = 2; c.Keys[0] = []int{0} }))
	both(mk("w2-skip2", two(), func(c *Cfg) { c.B.B.Skip = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0, 1}; c.Sinks = 1; c.Win = 2 }))
	both(mk("x2-flush-crash-sh", two(), func(c *Cfg) {
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{1, 0}
		c.Sinks = 1
		c.B.B.Flush = 1
		c.B.B.Crash = 1
		c.Atomic = false
		c.MaxSt = 3000000
	}))
	both(mk("x3-replay2p", two(), func(c *Cfg) { c.Keys[0] = []int{0}; c.Sinks = 1; c.Replay = true; c.B.B.Crash = 1; c.MaxSt = 5000000 }))
	both(mk("x1-poison-own", base(), func(c *Cfg) { c.Poison[0] = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0, 0, 1} }))
	both(mk("x2-poison-flush", two(), func(c *Cfg) { c.Poison[0] = 1; c.Sinks = 1; c.B.B.Flush = 1; c.Keys[0] = []int{0} }))
	both(mk("x3-replay-poison", base(), func(c *Cfg) { c.Poison[0] = 1; c.Sinks = 1; c.Replay = true; c.B.B.Crash = 1; c.Keys[0] = []int{0, 0} }))
	both(mk("x1", base(), func(c *Cfg) {
		c.B.B.Zom = 1
		c.B.B.Crash = 1
		c.B.B.Amb = 1
		c.B.B.For = 1
		c.Keys[0] = []int{0, 1, 0}
		c.Split = true
	}))
	both(mk("x1-pc", base(), func(c *Cfg) { c.B.B.PC = 1; c.B.B.Crash = 1; c.B.B.Zom = 1; c.B.B.For = 1; c.Keys[0] = []int{0, 1, 2} }))
	both(mk("x1-back-skip", base(), func(c *Cfg) {
		c.B.B.Back = 1
		c.B.B.Skip = 1
		c.B.B.Crash = 2
		c.Keys[0] = []int{0, 1, 0}
		c.B.B.For = 1
	}))
	both(mk("x2-amb-lose", two(), func(c *Cfg) { c.Keys[0] = []int{0}; c.B.B.Lose = 1; c.B.B.Amb = 1; c.B.B.For = 1 }))
	both(mk("x2-amb-flush-crash", two(), func(c *Cfg) { c.Keys[0] = []int{0}; c.Sinks = 1; c.B.B.Flush = 1; c.B.B.Amb = 1; c.B.B.Crash = 1 }))
	both(mk("x2-zom-flush", two(), func(c *Cfg) { c.Keys[0] = []int{0}; c.B.B.Flush = 1; c.B.B.Zom = 1; c.MaxSt = 7000000 }))
	both(mk("x2-shards-crash", two(), func(c *Cfg) {
		c.Atomic = false
		c.Keys[0] = []int{1, 0}
		c.Keys[1] = []int{0, 1}
		c.Win = 1
		c.B.B.Crash = 1
		c.MaxSt = 12000000
	}))
	both(mk("x2-poison-crash", two(), func(c *Cfg) {
		c.Poison[0] = 1
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{0}
		c.Sinks = 1
		c.B.B.Crash = 1
	}))
	both(mk("x2-und-crash2", two(), func(c *Cfg) {
		c.B.B.Und = 1
		c.B.B.Crash = 2
		c.Keys[0] = []int{0, 0}
		c.Keys[1] = []int{0}
		c.Sinks = 1
	}))
	both(mk("x2-und-crash-own", base(), func(c *Cfg) { c.B.B.Und = 1; c.B.B.Crash = 1; c.Keys[0] = []int{0, 0} }))
	both(mk("x3-replay-flush", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Keys[0] = []int{0}; c.B.B.Flush = 1; c.B.B.Crash = 1 }))
	both(mk("x3-replay-lose-amb", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Keys[0] = []int{0}; c.B.B.Lose = 1; c.B.B.Amb = 1 }))
	both(mk("x3-replay-zom2", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Keys[0] = []int{0}; c.B.B.Zom = 2; c.B.B.For = 1 }))
	both(mk("x3-replay-dup", base(), func(c *Cfg) { c.Sinks = 1; c.Replay = true; c.Keys[0] = []int{0, 0}; c.B.B.Crash = 2 }))
	both(mk("m-gateoff", two(), func(c *Cfg) { c.GateOff = true; c.Win = 2 }))
	both(mk("m-readoff", base(), func(c *Cfg) { c.ReadOff = true; c.Win = 1; c.B.B.Crash = 1; c.B.B.For = 1 }))
	both(mk("m-overoff", base(), func(c *Cfg) { c.OverOff = true; c.Win = 1; c.B.B.Crash = 1; c.B.B.For = 1 }))
	both(mk("m-nodrain", base(), func(c *Cfg) { c.NoDrain = true; c.Win = 1; c.B.B.Reb = 1; c.B.B.For = 1 }))
	both(mk("m-ownerless", base(), func(c *Cfg) { c.Ownerless = true; c.Win = 1; c.B.B.Crash = 1 }))
	both(mk("m-wmglobal", base(), func(c *Cfg) { c.WMGlobal = true; c.Sinks = 1; c.Replay = true; c.Win = 2 }))
	w = append(w, ruledWorlds()...)
	return w
}
