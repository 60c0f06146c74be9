package main

// ruled is the protocol with all rules and the cures. The fences (FenceCl,
// FencePub, CallOnce) are another cure of what Tomb cures: see `fenced`.
func ruled(c Cfg) Cfg {
	name := c.Name
	c = fixed(c)
	c.Name = "r-" + name
	c.R, c.ClaimDl, c.Renew, c.Told, c.FreshClr, c.FirstDep = true, true, true, true, true, true
	c.Release, c.RelNonce, c.Tomb, c.ColdTaken, c.LateTaken, c.VerFresh, c.RunFirst, c.Cold = true, true, true, true, true, true, true, true
	c.ShortFree, c.ShortList, c.ShortTaken, c.ShortEp, c.Empty = true, true, true, true, true
	return c
}

// byFence takes the other cure.
func byFence(c *Cfg) {
	c.Tomb, c.ColdTaken = false, false
	c.FenceCl, c.FencePub, c.CallOnce = true, true, true
}

func ruledWorlds() []Cfg {
	var w []Cfg
	add := func(name, shows string, c Cfg, f func(c *Cfg)) {
		c.Shows = shows
		c = ruled(mk(name, c, func(*Cfg) {}))
		f(&c)
		w = append(w, c)
	}
	b := func(c *Cfg) *Budget { return &c.B.B }
	// claim calls: nonce, lost replies, renewal
	add("reply", "a claim reply is lost, the call is sent again", base(), func(c *Cfg) { b(c).Rep = 1; b(c).Crash = 1; c.Win = 2 })
	add("reply-stale", "... while a delayed commit has overwritten the intent", base(), func(c *Cfg) { b(c).Rep = 1; b(c).Crash = 1; b(c).PC = 1; b(c).For = 1 })
	add("reply-back", "... after an offset reset backwards", base(), func(c *Cfg) { b(c).Rep = 1; b(c).Back = 1; b(c).Crash = 1; b(c).For = 1 })
	add("reply-zombie", "... by a zombie", base(), func(c *Cfg) { b(c).Rep = 1; b(c).Zom = 1; b(c).For = 1; c.Half = true })
	add("reply-und", "... by a zombie whose record no longer decodes, with a waiter", two(), func(c *Cfg) {
		c.Keys[0] = []int{0}
		c.MaxCut = 1
		b(c).Rep = 1
		b(c).Zom = 1
		b(c).Und = 1
		c.Half = true
		c.MaxSt = 4000000
	})
	add("reply-flush", "... over a store loss; the deadline counts from the claim", two(), func(c *Cfg) { c.Keys[0] = []int{0}; b(c).Rep = 1; b(c).Flush = 1; c.Sinks = 1 })
	add("renew-flush", "two sinks, a store loss between claim and intent", two(), func(c *Cfg) { c.Keys[0] = []int{0}; b(c).Flush = 1 })
	add("renew-lose", "... a partial loss", two(), func(c *Cfg) { c.Keys[0] = []int{0}; b(c).Lose = 1 })
	add("renew-half", "waits and deadlines that overlap in part, a crash", base(), func(c *Cfg) { b(c).Crash = 1; b(c).Amb = 1; c.Half = true })
	add("late-copy", "a copy of the claim call stays in the network, a crash", base(), func(c *Cfg) { b(c).LC = 1; b(c).Crash = 1 })
	// claim release
	add("release", "the owner is dead-lettered and releases; waiters ask again", two(), func(c *Cfg) { c.Poison[0] = 1; c.Keys[0] = []int{0, 0}; c.Keys[1] = []int{0}; c.Sinks = 1 })
	add("release-crash", "... a crash", two(), func(c *Cfg) {
		c.Poison[0] = 1
		c.Keys[0] = []int{0, 0}
		c.Keys[1] = []int{0}
		c.Sinks = 1
		b(c).Crash = 1
	})
	add("release-zombie", "... a zombie", two(), func(c *Cfg) {
		c.Poison[1] = 1
		c.Keys[0] = []int{0}
		c.Keys[1] = []int{0, 0}
		b(c).Zom = 1
		c.MaxCut = 1
		c.MaxSt = 9000000
	})
	add("release-copy", "... a late copy of a claim call", two(), func(c *Cfg) { c.Poison[1] = 1; c.Keys[0] = []int{0}; c.Keys[1] = []int{0, 0}; c.Sinks = 1; b(c).LC = 1 })
	add("expire", "a claim falls out of the horizon while its row waits", two(), func(c *Cfg) { c.Keys[0] = []int{0, 1}; c.Keys[1] = []int{0}; c.Sinks = 1; b(c).Exp = 1; b(c).Crash = 1 })
	add("release-fence", "the other cure: fences instead of the mark", two(), func(c *Cfg) {
		byFence(c)
		c.Poison[0] = 1
		c.Keys[0] = []int{0, 0}
		c.Keys[1] = []int{0}
		c.Sinks = 1
		b(c).Crash = 1
	})
	add("release-fence-copy", "... a late copy", two(), func(c *Cfg) {
		byFence(c)
		c.Poison[1] = 1
		c.Keys[0] = []int{0}
		c.Keys[1] = []int{0, 0}
		c.Sinks = 1
		b(c).LC = 1
	})
	add("release-fence-zombie", "... a zombie", two(), func(c *Cfg) {
		byFence(c)
		c.Poison[1] = 1
		c.Keys[0] = []int{0}
		c.Keys[1] = []int{0, 0}
		b(c).Zom = 1
		c.MaxCut = 1
		c.MaxSt = 6000000
	})
	// what is inside acked is settled without wait or read
	add("short", "rows of an intent inside acked", base(), func(c *Cfg) { b(c).Crash = 2; b(c).For = 1; b(c).Amb = 1 })
	add("short-back", "... after a reset backwards", base(), func(c *Cfg) { b(c).Crash = 1; b(c).Back = 1; b(c).For = 1 })
	add("short-skip", "... after a skip and a reset backwards", base(), func(c *Cfg) { c.Keys[0] = []int{0, 1, 0}; b(c).Crash = 1; b(c).Back = 1; b(c).Skip = 1 })
	add("short-fwd", "an owner of the same partition at a later offset", base(), func(c *Cfg) { c.Keys[0] = []int{0, 0}; b(c).Crash = 1; b(c).Back = 1; b(c).Skip = 1; b(c).Und = 1 })
	add("short-zombie-flush", "a zombie claims in the new epoch what stood inside the old acked", two(), func(c *Cfg) { c.Keys[0] = []int{0}; b(c).Zom = 1; b(c).Flush = 1; c.MaxCut = 1; c.MaxSt = 3000000 })
	add("short-flush", "... a store loss between the assignment and the claim", two(), func(c *Cfg) {
		c.Keys[0] = []int{0}
		c.Sinks = 1
		c.MaxCut = 1
		b(c).Rep = 1
		b(c).Flush = 1
		b(c).Crash = 1
		c.MaxSt = 8000000
	})
	// views
	view := func(c *Cfg) {
		c.Views, c.Case1, c.Case1Win, c.Case1Set, c.Case2a, c.Case2b, c.Case2bL, c.FreeView = true, true, true, true, true, true, true, true
		c.ListView, c.GateView, c.Case2d = true, true, true
		c.Win = 2
	}
	add("view", "a server crash between table and view", base(), func(c *Cfg) { view(c); b(c).Srv = 1; c.Sinks = 1 })
	add("view-for", "... with a foreign block in the window", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).For = 1; c.Sinks = 1 })
	add("view-narrow", "... and a window of one block", base(), func(c *Cfg) { view(c); c.Win = 1; b(c).Srv = 1; b(c).For = 1; c.Sinks = 1 })
	add("view-crash", "... and a crash of the sink", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).For = 1; b(c).Crash = 1 })
	add("view-amb", "... and an ambiguous insert", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).For = 1; b(c).Amb = 1; b(c).Crash = 1 })
	add("view-zombie", "... and a zombie", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).For = 1; b(c).Zom = 1 })
	add("view-back", "... and a reset backwards", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).Back = 1; b(c).Crash = 1 })
	add("view-back-skip", "... a skip, then back", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).Back = 1; b(c).Skip = 1; b(c).Crash = 1 })
	add("view-stale", "... and a delayed commit over the newer intent", base(), func(c *Cfg) { view(c); c.Keys[0] = []int{0, 1, 2}; b(c).Srv = 1; b(c).PC = 1; b(c).Crash = 1 })
	add("view-und", "... and a record that no longer decodes", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).Und = 1; b(c).Crash = 1 })
	add("view-flush", "... and a store loss", base(), func(c *Cfg) { view(c); b(c).Srv = 1; b(c).Flush = 1; b(c).Crash = 1 })
	add("view-gate", "a waiter reads the table while the view waits", two(), func(c *Cfg) { view(c); c.Keys[0] = []int{0}; b(c).Srv = 1; b(c).For = 1; c.Sinks = 1 })
	add("view-gate-crash", "... and a crash of the sink", two(), func(c *Cfg) { view(c); c.Keys[0] = []int{0}; b(c).Srv = 1; b(c).Crash = 1; c.Sinks = 1 })
	add("view-order", "the view may be written before the table", base(), func(c *Cfg) {
		view(c)
		c.Win = 1
		c.AnyOrder = true
		b(c).Srv = 1
		b(c).For = 1
		b(c).Crash = 1
	})
	// the bound of the intent list
	bound := func(c *Cfg) { c.Bound, c.BoundFirst, c.Reserve, c.Win, c.MaxCut = 1, true, true, 2, 1 }
	add("bound", "two partitions wait for each other, room for one batch", two(), func(c *Cfg) { bound(c); c.Keys[0] = []int{0, 1}; c.Keys[1] = []int{1, 0}; c.Sinks = 1 })
	add("bound-crash", "... a crash", two(), func(c *Cfg) { bound(c); c.Keys[0] = []int{0, 1}; c.Keys[1] = []int{1, 0}; c.Sinks = 1; b(c).Crash = 1 })
	add("bound-shards", "... claims that are not atomic", two(), func(c *Cfg) {
		bound(c)
		c.MaxCut = 2
		c.Atomic = false
		c.Keys[0] = []int{1, 0}
		c.Keys[1] = []int{0, 1}
		c.Sinks = 1
	})
	add("bound-release", "... an owner that is dead-lettered: its waiter's late row needs room too", two(), func(c *Cfg) { bound(c); c.Poison[0] = 1; c.Keys[0] = []int{0}; c.Keys[1] = []int{0, 1}; c.Sinks = 1 })
	add("bound-back", "... owners of an earlier life, met after skips and resets backwards", two(), func(c *Cfg) {
		bound(c)
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{1, 0}
		c.Sinks = 1
		b(c).Crash = 1
		b(c).Skip = 2
		b(c).Back = 2
		c.OldRun = true
	})
	add("bound-ask", "... an owner that changes while the list is full", two(), func(c *Cfg) {
		bound(c)
		c.MaxCut = 2
		c.Poison[1] = 1
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{0, 1, 0}
		c.Sinks = 1
	})
	// hash-tag groups
	group := func(c *Cfg) { c.Groups, c.GrpEp, c.GrpAcked, c.Win = true, true, true, 2 }
	add("groups", "one of two hash-tag groups is lost", two(), func(c *Cfg) { group(c); c.Keys[0] = []int{0, 1}; c.Keys[1] = []int{1, 0}; c.Sinks = 1; b(c).Flush = 1 })
	add("groups-lone", "... batches that touch one group only", two(), func(c *Cfg) {
		group(c)
		c.MaxCut = 1
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{1, 0}
		c.Sinks = 1
		b(c).Flush = 1
	})
	add("groups-shards", "... claims that are not atomic", two(), func(c *Cfg) {
		group(c)
		c.Atomic = false
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{1}
		c.Sinks = 1
		b(c).Flush = 1
	})
	add("groups-crash", "... and a crash", two(), func(c *Cfg) {
		group(c)
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{1}
		c.Sinks = 1
		b(c).Flush = 1
		b(c).Crash = 1
		c.MaxSt = 8000000
	})
	// nothing to send
	add("empty", "a batch with nothing to send has no intent entry", two(), func(c *Cfg) {
		c.Keys[0] = []int{0, 1}
		c.Keys[1] = []int{0, 1}
		c.Sinks = 1
		b(c).Crash = 1
		c.MaxSt = 8000000
	})
	add("empty-reb", "... it moves", two(), func(c *Cfg) {
		c.Keys[0] = []int{0}
		c.Keys[1] = []int{0, 1}
		b(c).Reb = 1
		b(c).Amb = 1
		c.MaxSt = 8000000
	})
	return w
}
