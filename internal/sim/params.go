package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Params is a world: what there is, and what may go wrong how often. A run
// follows from them alone.
type Params struct {
	World uint64 // makes the records
	Seed  uint64 // makes the schedule

	Partitions int
	Records    int // of each partition
	Keys       int
	Sinks      int  // processes of the main group
	Replay     bool // a second group reads the same topic
	Views      int
	Split      int // table partitions; 1: not partitioned
	Most       int // L: table partitions of one statement, 0: no limit
	MostAfter  int // L of processes that were started again
	Window     int // blocks
	WindowMs   int64
	Groups     int // hash-tag groups
	MaxCut     int // rows of a batch
	Metadata   int
	Gaps       int // percent of offsets that hold no record
	Conflicts  int // percent of duplicates with other fields
	Undecoded  int // percent
	Filtered   int
	Poison     int
	Cold       int
	Stop       bool // on_conflict: stop
	Finish     bool // the server ends inserts whose client is gone, instead of cancelling some
	Steps      int
	FaultRate  int // per mille of the steps

	Faults [faults]int
	Break  Break
	Aim    Aim
}

// Break switches off what the shell and the servers owe the protocol; the
// machine's own rules are broken by patches of its source.
type Break struct {
	CurrentGeneration bool // F8: commits carry the member's present generation
	NoDrain           bool // a revoked worker goes on
	NoDeadline        bool // F1: the server doesn't check
	ViewErrorIsData   bool
	Kill              bool // running statements are killed, not waited for
	NoTopicID         bool
	StaleRead         bool // read-back from a replica that lags
}

// Draw makes the world of a seed.
func Draw(seed uint64) Params {
	r := rand.New(rand.NewPCG(seed, 0xd1a))
	p := Params{World: seed, Seed: seed}
	p.Partitions = 1 + r.IntN(3)
	p.Records = 4 + r.IntN(24)
	p.Keys = 2 + r.IntN(max(2, p.Partitions*p.Records))
	p.Sinks = 1 + r.IntN(3)
	p.Replay = r.IntN(4) == 0
	p.Views = []int{0, 0, 1, 1, 2}[r.IntN(5)]
	p.Split = []int{1, 1, 2, 3}[r.IntN(4)]
	if p.Split > 1 && r.IntN(2) == 0 {
		p.Most = 1 + r.IntN(p.Split)
	}
	p.MostAfter = p.Most
	if p.Split > 1 && r.IntN(4) == 0 {
		p.MostAfter = r.IntN(p.Split + 1)
	}
	p.Window = []int{1000, 1000, 64, 64, 40}[r.IntN(5)]
	p.WindowMs = []int64{600_000, 600_000, 60_000}[r.IntN(3)]
	p.Groups = []int{1, 1, 2}[r.IntN(3)]
	p.MaxCut = 1 + r.IntN(8)
	p.Metadata = []int{4096, 4096, 2600}[r.IntN(3)]
	if r.IntN(3) == 0 {
		p.Gaps = 15
	}
	if r.IntN(3) == 0 {
		p.Conflicts = 10
	}
	if r.IntN(4) == 0 {
		p.Undecoded = 6
	}
	if r.IntN(4) == 0 {
		p.Filtered = 8
	}
	if r.IntN(4) == 0 {
		p.Poison = 8
	}
	if r.IntN(5) == 0 {
		p.Cold = 20
	}
	p.Stop = r.IntN(12) == 0
	p.Finish = rand.New(rand.NewPCG(seed, 0xf17)).IntN(3) == 0
	p.Steps = 2500
	p.FaultRate = []int{5, 15, 40, 100}[r.IntN(4)]
	for f := range faultExchange {
		if r.IntN(3) == 0 {
			p.Faults[f] = 1 + r.IntN(3)
		}
	}
	if x := rand.New(rand.NewPCG(seed, 0xe8c)); x.IntN(4) == 0 {
		p.Faults[faultExchange] = 1 + x.IntN(3)
	}
	if r.IntN(10) == 0 {
		p.Faults = [faults]int{}
	}
	return p.bearable()
}

// bearable takes out what nothing is promised for: what another group claimed in
// another store is known to that group alone.
func (p Params) bearable() Params {
	if p.Faults[faultExchange] > 0 {
		p.Replay = false
	}
	return p
}

func (p Params) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "world %d seed %d: %d partitions x %d records, %d keys, %d sinks", p.World, p.Seed, p.Partitions, p.Records, p.Keys, p.Sinks)
	if p.Replay {
		b.WriteString(", a replay group")
	}
	fmt.Fprintf(&b, ", %d views, %d table partitions (at most %d a statement), window %d blocks %d s, %d hash-tag groups, cuts to %d rows",
		p.Views, p.Split, p.Most, p.Window, p.WindowMs/1000, p.Groups, p.MaxCut)
	for _, x := range []struct {
		n    int
		name string
	}{{p.Gaps, "gaps"}, {p.Conflicts, "conflicts"}, {p.Undecoded, "undecodable"}, {p.Filtered, "filtered"}, {p.Poison, "poison"}, {p.Cold, "cold"}} {
		if x.n > 0 {
			fmt.Fprintf(&b, ", %d%% %s", x.n, x.name)
		}
	}
	if p.MostAfter != p.Most {
		fmt.Fprintf(&b, ", %d a statement after a restart", p.MostAfter)
	}
	if p.Stop {
		b.WriteString(", on_conflict: stop")
	}
	if p.Finish {
		b.WriteString(", inserts outlive their clients")
	}
	for f, n := range p.Faults {
		if n > 0 {
			fmt.Fprintf(&b, ", %s x%d", faultNames[f], n)
		}
	}
	if p.Aim.On {
		b.WriteString(", aimed: " + p.Aim.String())
	}
	return b.String()
}
