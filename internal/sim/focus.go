package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Focus narrows the worlds that are drawn to those in which something can be
// found: which faults there are, with views or without, and so on. The zero
// value leaves them as they are.
type Focus struct {
	Faults []fault
	Only   bool // no other faults
	Views  int  // -1: none, 1: some, 0: as drawn
	Split  bool // several pieces
	Replay bool
	Poison bool
	Undec  bool
	Small  bool // little room for metadata
	Long   bool // many small batches
	Finish bool
	Other  bool // duplicates with other fields
	Break  Break
}

// ParseFocus reads words between commas: names of faults, "only", "views", "no
// views", "pieces", "replay", "poison", "undecoded" and the fields of Break.
func ParseFocus(text string) (Focus, error) {
	var f Focus
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		if i := slices.Index(faultNames[:], word); i >= 0 {
			f.Faults = append(f.Faults, fault(i))
			continue
		}
		switch word {
		case "":
		case "only":
			f.Only = true
		case "views":
			f.Views = 1
		case "no views":
			f.Views = -1
		case "pieces":
			f.Split = true
		case "replay":
			f.Replay = true
		case "poison":
			f.Poison = true
		case "undecodable records":
			f.Undec = true
		case "small metadata":
			f.Small = true
		case "inserts outlive clients":
			f.Finish = true
		case "long logs":
			f.Long = true
		case "conflicts":
			f.Other = true
		case "no deadline":
			f.Break.NoDeadline = true
		case "present generation":
			f.Break.CurrentGeneration = true
		case "no drain":
			f.Break.NoDrain = true
		case "kill":
			f.Break.Kill = true
		case "view error is data":
			f.Break.ViewErrorIsData = true
		case "stale read":
			f.Break.StaleRead = true
		case "no topic id":
			f.Break.NoTopicID = true
		default:
			return f, fmt.Errorf("focus %q: unknown word %q", text, word)
		}
	}
	return f, nil
}

// Draw draws the world of a seed within the focus.
func (f Focus) Draw(seed uint64) Params {
	p := Draw(seed)
	r := rand.New(rand.NewPCG(seed, 0xf0c5))
	if f.Only {
		p.Faults = [faults]int{}
	}
	for _, x := range f.Faults {
		p.Faults[x] = 1 + r.IntN(4)
	}
	switch {
	case f.Views < 0:
		p.Views = 0
	case f.Views > 0 && p.Views == 0:
		p.Views = 1
	}
	if f.Split {
		p.Split = 2 + r.IntN(2)
		p.Most = 1 + r.IntN(p.Split-1)
	}
	p.Replay = p.Replay || f.Replay
	if f.Poison && p.Poison == 0 {
		p.Poison = 15
	}
	if f.Undec && p.Undecoded == 0 {
		p.Undecoded = 10
	}
	if f.Small {
		p.Metadata = 1320
	}
	if f.Long {
		p.Records, p.MaxCut = 60+r.IntN(60), 1+r.IntN(2)
		p.Partitions, p.Sinks = max(p.Partitions, 2), max(p.Sinks, 2)
		p.Keys = 2 * p.Partitions * p.Records
		p.Steps *= 3
	}
	if f.Other && p.Conflicts == 0 {
		p.Conflicts = 15
	}
	p.Finish = p.Finish || f.Finish
	p.Break = f.Break
	return p.bearable()
}
