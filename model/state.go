package main

import (
	"fmt"
	"sort"
	"strings"
)

// Bounds of a world.
const (
	MP = 2 // partitions
	MO = 4 // records a partition
	MK = 3 // keys
	MS = 3 // sinks: 0 and 1 of group 0, 2 of the replay group
	MA = 4 // insert attempts at a time
	MG = 2 // consumer groups
	MH = 2 // hash-tag groups of the store
)

// verdicts
const (
	vNone = iota
	vNew
	vMine
	vDup  // foreign, gate pending
	vDupS // duplicate, settled (own earlier / in batch / resolved)
	vDead // dead-lettered
	vOwn  // own, inserted
)

// steps of a partition's worker
const (
	sFetch = iota
	sIdle
	sClaim
	sIntent
	sCheck
	sSend
	sOver
	sRead
	sSent
	sDone
	sJoin  // reads acked and registers the run in the store
	sRenew // claims again by nonce
	sStop  // stopped by I4
)

const (
	ownTaken = 32 // added to the owner of a claim that is marked taken
	ownTable = 63 // the claim was rebuilt from the table
	ownAsk   = 62 // no owner met: ask again
	ownGone  = 61 // released: whoever claims it next takes it
)

// Worker is what one sink keeps in memory of one partition.
type Worker struct {
	Has, Gen, Step, Pos, Last, PF uint8
	Rec, Auth, Miss, Wait         uint8
	Ep                            [MH]uint8
	V                             [MO]uint8
	O                             [MO]int8 // owner id
	Sus, SusSt, SusInc, Vf        uint8
	XEp                           [MH]uint8
	X, XS, XW                     uint8     // rows that became NEW or taken after the insert of their batch
	Lo                            [MH]uint8 // start of the acked run known to the worker

	// below: only with the R rules
	AGen, SusN, SusW, XA uint8
	Nc                   uint8     // offsets whose claim still carries this worker's nonce
	Begun                uint8     // the claim call of this attempt has left
	Rel                  uint8     // dead-lettered offsets whose claim is to be released
	ALo, AHi, AEp        [MH]uint8 // acked as read at the assignment, and its epoch
	NB                   uint8     // batches in the intent list
	EM, C0, V0, R0       uint8     // intent entry: rows, stamps of both windows and of restarts (+1; 0 none)
	Tch                  uint8     // hash-tag groups that the batch touched
}

// Att is an insert statement under way.
type Att struct {
	St, G, P, Mask, Cl, X uint8 // St 0 none 1 net 2 running; Cl = sink+1 or 0
	F, L                  uint8
	Land                  uint8 // table partitions landed (with views: bit 0 table, bit 1 view)
	Age                   uint8 // time left until the deadline
}

// KP is the committed offset of one partition with its metadata.
type KP struct {
	Off, Int, Last, Mask uint8 // Int 1: intent to Last(excl)
	C0, V0, R0           uint8
}

// Late is a copy of a claim call that the network still holds. Same: its
// attempt still runs; Ans: the store has answered this call or a later one.
type Late struct {
	St, I, P, G, F, L, AGen, Same, Ans, Nc uint8
	Ep                                     [MH]uint8
}

// Budget counts the faults that may still happen.
type Budget struct {
	Crash, Reb, Zom, Amb, For, Lose, Flush, Skip, Back, Und, PC uint8
	Rep, LC, Exp, Srv, Kill                                     uint8
}

// State is the whole world; equal states are one node of the search.
type State struct {
	K      [MG][MP]KP
	Gen    [MG]uint8
	Own    [MG][MP]int8
	Mem    [MS]uint8 // 0 dead, 1 member, 2 zombie (kicked)
	C      [MK]int8  // claim owner id, -1 none
	Inc    [MK]uint8
	Ord    [MK]int8 // order of claims, oldest first
	Lo, Hi [MH][MG][MP]uint8
	Ep     [MH]uint8
	Verify [MH]uint8
	Quar   [MH]uint8
	Reas   [MS]uint8 // must re-assert before next claim
	Rows   [MK]uint8
	Tok    [2][2]uint16
	FT     uint8
	A      [MA]Att
	DL     [MP]uint8 // dead-lettered mask
	Und    [MP]uint8 // undecodable mask
	W      [MS][MP]Worker
	PC     struct { // pending stale commit
		St, G, P, Gen uint8
		K             KP
	}
	B Budget

	// below: only with the R rules
	Fr             [MK]uint8 // fresh
	Cold           [MK]uint8 // the claim has expired: older than the horizon
	Run            [MG][MP]uint8
	Late           Late
	VRows          [MK]uint8
	VTok           [2]uint16
	Cnt, VCnt, Rst uint8
	Log            [4]uint16 // query_log: tokens whose statement finished
	Dirty          uint8     // a statement was killed half way (for reports only)
}

func bit(o int) uint8 { return 1 << uint(o) }

func key(p, o int) int { return cfg.Keys[p][o] }
func fp(p, o int) int {
	if cfg.FP[p] == nil {
		return 0
	}
	return cfg.FP[p][o]
}
func nrec(p int) int { return len(cfg.Keys[p]) }

// hg is the hash-tag group of a key.
func hg(k int) int {
	if cfg.Groups {
		return k % 2
	}
	return 0
}
func oid(g, p, o int) int8 {
	if cfg.Ownerless {
		return 0
	}
	return int8(g*16 + p*4 + o)
}
func oget(i int8) (int, int, int) {
	if i >= ownTaken {
		i -= ownTaken
	}
	return int(i) / 16, int(i) / 4 % 4, int(i) % 4
}
func grp(s int) int {
	if s == 2 {
		return 1
	}
	return 0
}
func tok(p, f, l, mask int) uint16 {
	if cfg.NoDigest {
		mask = 0
	}
	return uint16(1 + (p | f<<1 | l<<4 | mask<<7))
}

func (s *State) live(g int) bool {
	for i := 0; i < MS; i++ {
		if grp(i) == g && s.Mem[i] == 1 {
			return true
		}
	}
	return false
}

// i1 says what an offset committed to off would lose.
func (s *State) i1(p, off int) string {
	for o := 0; o < off; o++ {
		k := key(p, o)
		if s.DL[p]&bit(o) != 0 {
			continue
		}
		if s.Rows[k] == 0 {
			return fmt.Sprintf("I1: P%d committed to %d but key %c of P%d@%d is not in ClickHouse", p, off, 'a'+k, p, o)
		}
		if cfg.Views && s.VRows[k] == 0 {
			return fmt.Sprintf("I1: P%d committed to %d but key %c of P%d@%d is not in the view", p, off, 'a'+k, p, o)
		}
	}
	return ""
}

func (w *Worker) mask() uint8 {
	var m uint8
	for o := int(w.Pos); o < int(w.Last); o++ {
		if w.V[o] == vNew || w.V[o] == vMine {
			m |= bit(o)
		}
	}
	return m
}

func (s *State) dropProc(i int) {
	for p := 0; p < MP; p++ {
		s.dropW(i, p)
	}
}

// endAttempt: what the worker claims next is another attempt with another nonce.
func (s *State) endAttempt(i, p int) {
	s.W[i][p].Begun = 0
	if s.Late.Same == 1 && int(s.Late.I) == i && int(s.Late.P) == p {
		s.Late.Same, s.Late.Nc = 0, s.W[i][p].Nc
	}
}
func (s *State) dropW(i, p int) {
	s.endAttempt(i, p)
	s.W[i][p] = Worker{}
	for a := range s.A {
		if s.A[a].St != 0 && int(s.A[a].Cl) == i+1 && int(s.A[a].P) == p {
			s.A[a].Cl = 0
		}
	}
}

// norm makes the order of attempts irrelevant.
func (s *State) norm() {
	sort.Slice(s.A[:], func(i, j int) bool {
		a, b := s.A[i], s.A[j]
		x := [10]uint8{a.St, a.G, a.P, a.Mask, a.Cl, a.X, a.F, a.L, a.Land, a.Age}
		y := [10]uint8{b.St, b.G, b.P, b.Mask, b.Cl, b.X, b.F, b.L, b.Land, b.Age}
		for n := range x {
			if x[n] != y[n] {
				return x[n] > y[n]
			}
		}
		return false
	})
}

// settledState is where the liveness check wants to be able to get to: all
// offsets at the end and no intent left, or a partition stopped by I4.
func settledState(s *State) bool {
	for i := range s.W {
		for p := range s.W[i] {
			if s.W[i][p].Has == 1 && s.W[i][p].Step == sStop {
				return true
			}
		}
	}
	for g := 0; g < MG; g++ {
		if g == 1 && (!cfg.Replay || s.Mem[2] == 0) {
			continue
		}
		for p := 0; p < cfg.NP; p++ {
			if int(s.K[g][p].Off) != nrec(p) || s.K[g][p].Int == 1 {
				return false
			}
		}
	}
	return true
}

// Labels are only made when a schedule is printed.
var labels bool

func rn(p, a, b int) string {
	if !labels {
		return ""
	}
	if b == a+1 {
		return fmt.Sprintf("P%d[%d]", p, a)
	}
	return fmt.Sprintf("P%d[%d..%d]", p, a, b-1)
}

func maskS(m uint8) string {
	if !labels {
		return ""
	}
	var b []string
	for o := 0; o < MO; o++ {
		if m&bit(o) != 0 {
			b = append(b, fmt.Sprint(o))
		}
	}
	return "{" + strings.Join(b, ",") + "}"
}
