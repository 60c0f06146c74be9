package main

import "fmt"

// Cfg is one world: its records, its faults and the rules in force.
type Cfg struct {
	Name   string
	Shows  string
	Keys   [MP][]int // key per offset
	FP     [MP][]int
	NP     int
	Sinks  int // of group 0 (1-2)
	Replay bool
	Win    int
	Split  bool
	Atomic bool // claims of one batch in one atomic step
	MaxCut int
	Poison [MP]uint8
	B      State
	MaxSt  int
	Live   bool

	// mutations
	NoIntent, NoDigest, GateOff, ReadOff, OverOff, NoDrain, Ownerless, WMGlobal bool
	// interpretations
	WMAfterGate bool // acked published only after gate opened
	CurGen      bool // commits carry the process's current generation
	ZKeep       bool // a zombie that notices keeps its workers
	NoWarm      bool // verify mode is never left

	// rules F1-F9
	Deadline, MineRead, Interval, Extend, Passed, IncFix, Quar, Taken, VerClaim, OwnFwd, Recl, IdleC, GateClaim, PubEp bool

	// rules R. R switches the finer machinery on: nonces without counters, the
	// assignment in two steps (Kafka, then the store), no look at the store's
	// epoch when Kafka is written.
	R        bool
	ClaimDl  bool // the deadline counts from the departure of the claim call
	Renew    bool // a renewal must find the nonce unchanged
	Told     bool // a re-sent call is told by its nonce
	FreshClr bool // MINE clears fresh
	FirstDep bool // a re-sent call keeps the departure of the first copy
	Half     bool // D is two ticks: a wait and a deadline may overlap in part

	Release   bool // the claim of a dead-lettered owner is deleted
	RelNonce  bool // ... by compare with the nonce
	Tomb      bool // ... which leaves a mark: the next owner of the key is a taker
	ColdTaken bool // an expired key is claimed as a taker too
	VerFresh  bool // NEW in verify mode is not fresh
	LateTaken bool // a claim made after the insert of its batch carries the taken mark
	RunFirst  bool // the new run is in the store before the first claim
	FenceCl   bool // a claim call of an older assignment is refused
	FencePub  bool // a publish of an older assignment is refused
	CallOnce  bool // a late copy of a claim call that was answered creates nothing
	Cold      bool // an expired key is read before it counts as new

	ShortFree  bool // MINE, not listed by an intent, owner inside acked: settled
	ShortList  bool // the same for rows that an intent lists
	ShortTaken bool // ... unless taken
	ShortEp    bool // ... and acked was read under the current epoch

	Views    bool
	AnyOrder bool // the view may be written before the table
	Case1    bool
	Case1Win bool // case 1 only inside the safe part of the window
	Case1Set bool // case 1 only for the very set of the entry
	Case2a   bool
	Case2b   bool
	Case2bL  bool // 2b asks query_log as well
	Case2d   bool // what can't be known stops; without: what is in the table counts
	ListView bool // a row that the intent lists is recovered whatever the verdict
	GateView bool // reading the table settles only what can't miss in the view
	FreeView bool // a free MINE row that is in the table counts only when no statement can have been killed

	Bound      int  // batches that the intent list has room for; 0: no bound
	BoundFirst bool // checked before the claim
	Reserve    bool // one more entry is kept for rows that come late
	OldRun     bool // F6 also for owners whose claim is of an older assignment than the partition's run

	Groups   bool // two hash-tag groups
	GrpEp    bool // verdicts of a group are void when its epoch changed
	GrpAcked bool // each group has its own copy of acked

	Empty bool // nothing to send: no intent entry, no statement
}

var cfg Cfg

// units is D in ticks.
func units() uint8 {
	if cfg.Half {
		return 2
	}
	return 1
}

// switches names what `ablate` can switch.
var switches = map[string]func(*Cfg){
	"Deadline": func(c *Cfg) { c.Deadline = false }, "MineRead": func(c *Cfg) { c.MineRead = false },
	"Interval": func(c *Cfg) { c.Interval = false }, "Extend": func(c *Cfg) { c.Extend = false },
	"Passed": func(c *Cfg) { c.Passed = false }, "IncFix": func(c *Cfg) { c.IncFix = false },
	"Quar": func(c *Cfg) { c.Quar = false }, "Taken": func(c *Cfg) { c.Taken = false },
	"VerClaim": func(c *Cfg) { c.VerClaim = false }, "OwnFwd": func(c *Cfg) { c.OwnFwd = false },
	"PubEp": func(c *Cfg) { c.PubEp = false }, "GateClaim": func(c *Cfg) { c.GateClaim = false },
	"Recl": func(c *Cfg) { c.Recl = false }, "IdleC": func(c *Cfg) { c.IdleC = false },
	"NoIntent": func(c *Cfg) { c.NoIntent = true }, "OverOff": func(c *Cfg) { c.OverOff = true },
	"NoDigest": func(c *Cfg) { c.NoDigest = true },

	"ClaimDl": func(c *Cfg) { c.ClaimDl = false }, "Renew": func(c *Cfg) { c.Renew = false },
	"Told": func(c *Cfg) { c.Told = false }, "FreshClr": func(c *Cfg) { c.FreshClr = false },
	"FirstDep": func(c *Cfg) { c.FirstDep = false }, "Release": func(c *Cfg) { c.Release = false },
	"RelNonce": func(c *Cfg) { c.RelNonce = false }, "LateTaken": func(c *Cfg) { c.LateTaken = false },
	"RunFirst": func(c *Cfg) { c.RunFirst = false }, "FenceCl": func(c *Cfg) { c.FenceCl = false },
	"FencePub": func(c *Cfg) { c.FencePub = false }, "Fence": func(c *Cfg) { c.FenceCl, c.FencePub = false, false },
	"CallOnce": func(c *Cfg) { c.CallOnce = false },
	"Tomb":     func(c *Cfg) { c.Tomb = false }, "ColdTaken": func(c *Cfg) { c.ColdTaken = false },
	"Case2d":   func(c *Cfg) { c.Case2d = false },
	"ListView": func(c *Cfg) { c.ListView = false }, "GateView": func(c *Cfg) { c.GateView = false },
	"VerFresh": func(c *Cfg) { c.VerFresh = false },
	"Cold":     func(c *Cfg) { c.Cold = false }, "ShortFree": func(c *Cfg) { c.ShortFree = false },
	"ShortList": func(c *Cfg) { c.ShortList = false }, "ShortTaken": func(c *Cfg) { c.ShortTaken = false },
	"ShortEp": func(c *Cfg) { c.ShortEp = false }, "Case1": func(c *Cfg) { c.Case1 = false },
	"Case1Win": func(c *Cfg) { c.Case1Win = false }, "Case1Set": func(c *Cfg) { c.Case1Set = false },
	"Case2a": func(c *Cfg) { c.Case2a = false }, "Case2b": func(c *Cfg) { c.Case2b = false },
	"Case2bL": func(c *Cfg) { c.Case2bL = false }, "FreeView": func(c *Cfg) { c.FreeView = false },
	"BoundFirst": func(c *Cfg) { c.BoundFirst = false }, "Reserve": func(c *Cfg) { c.Reserve = false },
	"OldRun": func(c *Cfg) { c.OldRun = false }, "GrpEp": func(c *Cfg) { c.GrpEp = false },
	"GrpAcked": func(c *Cfg) { c.GrpAcked = false }, "Empty": func(c *Cfg) { c.Empty = false },
}

// same: the switch made no difference to the world.
func (c Cfg) same(d Cfg) bool {
	return fmt.Sprint(c) == fmt.Sprint(d)
}
