package pipeline

import (
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// An Effect is something the shell is to do for the machine; its answer comes
// back as an Event with the same Ref. A lane has at most one effect under way.
type Effect interface{ effect() }

// Lane tells the two threads of work of one partition apart: the batch under
// way, and the gate of the batches that are inserted but not yet committed.
type Lane uint8

// The lanes.
const (
	LaneMain Lane = iota
	LaneGate
)

// Ref ties an answer to its effect. An answer whose Ref is no longer awaited
// is dropped: the machine has gone on without it.
type Ref struct {
	Lane Lane
	Seq  uint32
}

// Row is one record of one batch.
type Row struct {
	Batch *Batch
	Index int
}

// Set is a set of rows that is sent, read or judged as a whole, in offset
// order. Part i holds indices of Batches[i].
type Set struct {
	Parts []Part
}

// Part is the share of a set that lies in one batch: ascending row indices.
type Part struct {
	Batch *Batch
	Rows  []int32
}

// Len is the number of rows.
func (s Set) Len() int {
	n := 0
	for _, p := range s.Parts {
		n += len(p.Rows)
	}
	return n
}

// Each calls f for every row with its position in the set.
func (s Set) Each(f func(i int, b *Batch, row int32)) {
	i := 0
	for _, p := range s.Parts {
		for _, r := range p.Rows {
			f(i, p.Batch, r)
			i++
		}
	}
}

type (
	// ReadAcked asks the store for the acked run of this source. It is the
	// first effect after an assignment, before StartRun replaces the run.
	ReadAcked struct{ Ref }
	// StartRun sets lo = hi = At in the store (F3).
	StartRun struct {
		Ref
		At int64
	}
	// Claim claims the rows of the set. The shell repeats it with the same
	// nonce until it is answered.
	Claim struct {
		Ref
		First int64
		Nonce uint32
		Late  bool
		Set   Set
	}
	// Renew replaces nonce Old by Nonce in the claims of the set.
	Renew struct {
		Ref
		Ticket     dedup.Ticket
		First      int64
		Old, Nonce uint32
		Late       bool
		Set        Set
	}
	// Commit commits the offset with the intent as its metadata.
	Commit struct {
		Ref
		Offset int64
		Intent *offsets.Intent
	}
	// Insert sends the set under the token of Job. Deadline is server time in
	// milliseconds: a statement that starts later is refused by the server.
	Insert struct {
		Ref
		Set      Set
		Range    batcher.Range
		Digest   uint64
		Deadline int64
		Attempt  int
		Parts    int    // L: the most table partitions of one piece; 0: not cut
		Replica  string // the replica of the intent, "" where any will do
	}
	// AwaitOver waits until no attempt with one of the stems can still write:
	// server time is past Until and no replica runs a query of a stem.
	AwaitOver struct {
		Ref
		Stems []string
		Until int64
	}
	// AskFacts asks what the logs and the windows say of the entry's attempts.
	AskFacts struct {
		Ref
		Set          Set // as it is cut now; where it is the entry's, it tells the number of pieces
		Parts        int
		Range        batcher.Range
		Digest       uint64
		FirstAttempt int64
		Deadline     int64
		Replica      string
	}
	// Read looks every row of the set up in ClickHouse, by key.
	Read struct {
		Ref
		Set Set
	}
	// Isolate finds the rows of the set that the server refuses.
	Isolate struct {
		Ref
		Set Set
	}
	// Release deletes the claims of dead-lettered rows, by compare with Nonce.
	Release struct {
		Ref
		Ticket dedup.Ticket
		Nonce  uint32
		Set    Set
	}
	// Settle marks claims that hold their Nonce as settled for good: their rows
	// are in ClickHouse, views included, and no run vouches for them.
	Settle struct {
		Ref
		Ticket dedup.Ticket
		Nonces []uint32 // of each row
		Set    Set
	}
	// Publish tells the store that owners in [Lo, Hi) have their rows in
	// ClickHouse. All reaches every hash-tag group, at idle.
	Publish struct {
		Ref
		Lo, Hi int64
		Ticket dedup.Ticket
		All    bool
	}
	// AskGate asks, for each row, whether its claim still names the owner met
	// and the owner's acked run covers it.
	AskGate struct {
		Ref
		Set    Set
		Owners []dedup.Owner
	}
	// AskOwners asks whether owners can still come: group members and
	// committed offsets (F6).
	AskOwners struct {
		Ref
		Owners []dedup.Owner
	}
	// TakeOver replaces the owners by these rows, by compare-and-set.
	TakeOver struct {
		Ref
		Nonce  uint32
		Set    Set
		Owners []dedup.Owner
	}
	// DeadLetter sends the letters and waits for their acknowledgement.
	DeadLetter struct {
		Ref
		Letters []Letter
	}
	// Sleep ends after some milliseconds, or at once when the shell likes.
	Sleep struct {
		Ref
		Millis int64
	}
	// Account counts the final class of every record of a batch whose offset
	// has been committed past it; the batch's memory may be given back.
	Account struct {
		Batch  *Batch
		Counts Counts
	}
	// Waits tells people why nothing moves; an empty reason means it does.
	Waits struct{ Reason string }
	// Halt stops the partition (I4): nothing is sent for it any more.
	Halt struct{ Reason, Cure string }
)

func (ReadAcked) effect()  {}
func (StartRun) effect()   {}
func (Claim) effect()      {}
func (Renew) effect()      {}
func (Commit) effect()     {}
func (Insert) effect()     {}
func (AwaitOver) effect()  {}
func (AskFacts) effect()   {}
func (Read) effect()       {}
func (Isolate) effect()    {}
func (Release) effect()    {}
func (Settle) effect()     {}
func (Publish) effect()    {}
func (AskGate) effect()    {}
func (AskOwners) effect()  {}
func (TakeOver) effect()   {}
func (DeadLetter) effect() {}
func (Sleep) effect()      {}
func (Account) effect()    {}
func (Waits) effect()      {}
func (Halt) effect()       {}

// An Event is what happened: the answer to an effect, or news from outside.
type Event interface{ event() }

type (
	// Assigned starts the machine: the committed offset (-1: none), what its
	// metadata said, and the end of the log: no earlier life can have claimed
	// beyond it.
	Assigned struct {
		Committed int64
		Intent    *offsets.Intent
		End       int64
	}
	// AckedRun answers ReadAcked.
	AckedRun struct {
		Ref
		Run    dedup.Run
		Ticket dedup.Ticket
	}
	// Cut brings the next batch, cut as Want said.
	Cut struct{ Batch *Batch }
	// Idle says that no batch is ready now.
	Idle struct{}
	// Again asks an idle machine to repeat its commit (F9).
	Again struct{}
	// Done answers StartRun, Commit, Release, Settle, DeadLetter, AwaitOver, Sleep and
	// Publish.
	Done struct{ Ref }
	// Claimed answers Claim, Renew and TakeOver. Its slices are the shell's
	// and may be used only during the step.
	Claimed struct {
		Ref
		Reply *dedup.Reply
	}
	// Refused answers any store effect: the epoch of the ticket is gone, so its
	// verdicts are void.
	Refused struct{ Ref }
	// Inserted answers Insert. Where a piece is refused for its data, Written
	// lists the rows of the pieces before it, which are in table and views.
	Inserted struct {
		Ref
		Result  writer.Result
		Written []int32 // positions in the set, ascending
	}
	// Facts answers AskFacts.
	Facts struct {
		Ref
		Attempts writer.Attempts
		Safe     bool   // inside the safe part of every window
		Why      string // why not
		Views    []string
		Ended    []batcher.Range // of statements of the stem that ended well
	}
	// Found answers Read: one flag a row of the set. The slice is the shell's.
	Found struct {
		Ref
		Present []bool
	}
	// Isolated answers Isolate.
	Isolated struct {
		Ref
		Bad []Refusal
	}
	// GateAnswers answers AskGate. The slice is the shell's.
	GateAnswers struct {
		Ref
		Answers []dedup.GateAnswer
	}
	// OwnersGone answers AskOwners.
	OwnersGone struct {
		Ref
		Fates []Fate
	}
	// Broken stops the partition from outside (missing offsets, an unknown
	// newer intent, a table of another route …).
	Broken struct{ Reason, Cure string }
)

func (Assigned) event()    {}
func (AckedRun) event()    {}
func (Cut) event()         {}
func (Idle) event()        {}
func (Again) event()       {}
func (Done) event()        {}
func (Claimed) event()     {}
func (Refused) event()     {}
func (Inserted) event()    {}
func (Facts) event()       {}
func (Found) event()       {}
func (Isolated) event()    {}
func (GateAnswers) event() {}
func (OwnersGone) event()  {}
func (Broken) event()      {}

// Refusal is one row that the server refuses, by its position in the set.
type Refusal struct {
	Pos     int
	Code    int32
	Message string
}

// Letter is a record bound for the dead-letter topic.
type Letter struct {
	Row    Row
	Class  string
	Detail string
	Owner  *dedup.Owner // of a conflict across batches
}

// Fate is what Kafka tells of the owner of a claim (F6).
type Fate struct {
	Gone   bool // it can't come any more
	Passed bool // its group has committed past it
	Listed bool // its partition's intent lists an insert that may hold it: whoever gets the partition settles it first
}
