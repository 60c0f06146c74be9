package sim

import (
	"fmt"
	"strings"

	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func intentText(meta string) string {
	if meta == "" {
		return "(no intent)"
	}
	in, err := offsets.Decode(meta)
	if err != nil || in == nil {
		return fmt.Sprintf("(bad intent: %v)", err)
	}
	var b strings.Builder
	b.WriteString("(intent")
	for _, e := range in.Entries {
		s := e.Tables[0]
		fmt.Fprintf(&b, " %s", e.Range)
		if e.Late != nil {
			fmt.Fprintf(&b, " late%v", e.Late)
		}
		fmt.Fprintf(&b, " n=%d h=%04x until %d first %d nonce %d", s.Rows, s.Digest>>48, s.Deadline.UnixMilli()-day0, s.FirstAttempt.UnixMilli()-day0, s.Nonce)
		if s.Mixed {
			b.WriteString(" mixed")
		}
	}
	if in.Passed > 0 {
		fmt.Fprintf(&b, " passed %d", in.Passed)
	}
	return b.String() + ")"
}

func rowsText(rows []row) string {
	var b strings.Builder
	b.WriteString("{")
	for i, r := range rows {
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "k%d/%d of %s P%d@%d", r.key, r.fp, r.group, r.part, r.offset)
	}
	return b.String() + "}"
}

// short leaves the cluster and topic out of a token.
func short(token string) string {
	parts := strings.SplitN(token, "/", 3)
	return "P" + parts[len(parts)-1]
}

func (w *world) recordsText(b *pipeline.Batch) string {
	var t strings.Builder
	for _, r := range b.Records {
		fmt.Fprintf(&t, " %d:k%d/%d", r.Offset, r.Key.Lo, r.Fingerprint)
		switch {
		case r.Status == pipeline.Rejected:
			t.WriteString("!")
		case r.Status == pipeline.Filtered:
			t.WriteString("-")
		case r.Cold:
			t.WriteString("c")
		}
	}
	return t.String()
}

func setText(s pipeline.Set) string {
	var b strings.Builder
	s.Each(func(_ int, batch *pipeline.Batch, i int32) {
		fmt.Fprintf(&b, " %d:k%d", batch.Records[i].Offset, batch.Records[i].Key.Lo)
	})
	return b.String()
}

func effectText(e pipeline.Effect) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "pipeline.")
	switch e := e.(type) {
	case pipeline.Claim:
		return fmt.Sprintf("%s nonce %d first %d late %v%s", name, e.Nonce, e.First, e.Late, setText(e.Set))
	case pipeline.Renew:
		return fmt.Sprintf("%s nonce %d -> %d%s", name, e.Old, e.Nonce, setText(e.Set))
	case pipeline.Commit:
		return fmt.Sprintf("%s %d, %d entries", name, e.Offset, len(e.Intent.Entries))
	case pipeline.Insert:
		return fmt.Sprintf("%s %s until %d attempt %d:%s", name, e.Range, e.Deadline-day0, e.Attempt, setText(e.Set))
	case pipeline.AwaitOver:
		return fmt.Sprintf("%s until %d", name, e.Until-day0)
	case pipeline.AskFacts:
		return fmt.Sprintf("%s %s since %d", name, e.Range, e.FirstAttempt-day0)
	case pipeline.Read:
		return name + setText(e.Set)
	case pipeline.Isolate:
		return name + setText(e.Set)
	case pipeline.Release:
		return name + setText(e.Set)
	case pipeline.Publish:
		return fmt.Sprintf("%s [%d, %d) all %v", name, e.Lo, e.Hi, e.All)
	case pipeline.StartRun:
		return fmt.Sprintf("%s at %d", name, e.At)
	case pipeline.AskGate:
		return name + setText(e.Set)
	case pipeline.AskOwners:
		return fmt.Sprintf("%s %v", name, e.Owners)
	case pipeline.TakeOver:
		return fmt.Sprintf("%s nonce %d%s", name, e.Nonce, setText(e.Set))
	case pipeline.DeadLetter:
		var b strings.Builder
		for _, l := range e.Letters {
			fmt.Fprintf(&b, " %d (%s)", l.Row.Batch.Records[l.Row.Index].Offset, l.Class)
		}
		return name + b.String()
	case pipeline.Account:
		return fmt.Sprintf("%s %+v", name, e.Counts)
	case pipeline.Sleep:
		return fmt.Sprintf("%s %d ms", name, e.Millis)
	case pipeline.Halt:
		return name + ": " + e.Reason
	case pipeline.Waits:
		return name + ": " + e.Reason
	}
	return name
}

func eventText(ev pipeline.Event) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", ev), "pipeline.")
	switch e := ev.(type) {
	case pipeline.Claimed:
		var b strings.Builder
		for _, a := range e.Reply.Answers {
			b.WriteString(" " + a.Verdict.String())
			if a.Owner >= 0 {
				o := e.Reply.Owners[a.Owner]
				fmt.Fprintf(&b, "(%s P%d@%d taken %v)", o.Group, o.Source.Partition, o.Offset, o.Taken)
			}
		}
		if e.Reply.Verify {
			b.WriteString(" verify")
		}
		return name + b.String()
	case pipeline.Inserted:
		return fmt.Sprintf("%s %s %s", name, e.Result.Outcome, e.Result.Cause)
	case pipeline.Facts:
		return fmt.Sprintf("%s safe %v (%s) known %v finished %v only rejected %v", name, e.Safe, e.Why, e.Attempts.Known, e.Attempts.Finished, e.Attempts.OnlyRejected)
	case pipeline.Found:
		return fmt.Sprintf("%s %v", name, e.Present)
	case pipeline.GateAnswers:
		var b strings.Builder
		for _, a := range e.Answers {
			b.WriteString(" " + a.State.String())
		}
		return name + b.String()
	case pipeline.AckedRun:
		return fmt.Sprintf("%s %+v", name, e.Run)
	case pipeline.OwnersGone:
		return fmt.Sprintf("%s %v", name, e.Fates)
	case pipeline.Isolated:
		return fmt.Sprintf("%s %v", name, e.Bad)
	}
	return name
}
