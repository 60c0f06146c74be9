package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// at is a step of the protocol, by what a lane of a machine waits for.
type at int

const (
	atIdle at = iota
	atAssigned
	atClaim
	atRenewal
	atLate // a claim of the gate: the one that was met is gone
	atLetter
	atRelease
	atIntent
	atFlight
	atView // the table has the rows of an insert, its views not all of them
	atSettle
	atAcked
	atCommit
	atGate
	atClosed // the gate waits before it asks again
	atTakeOver
	atOver
	atJudge
	atRead
	atBackOff
	atSteps // how many there are
)

var atNames = [atSteps]string{"idle", "assigned", "claim", "renewal", "late claim", "dead letter", "release", "intent", "in flight", "view", "settle",
	"acked", "commit", "gate", "gate closed", "take-over", "attempt over", "judge", "read", "back-off"}

// stepOf names the step that an effect is, and the lane that takes it.
func stepOf(e pipeline.Effect) (pipeline.Lane, at) {
	switch e := e.(type) {
	case pipeline.ReadAcked:
		return e.Lane, atAssigned
	case pipeline.StartRun:
		return e.Lane, atAssigned
	case pipeline.Claim:
		if e.Late {
			return e.Lane, atLate
		}
		return e.Lane, atClaim
	case pipeline.Renew:
		return e.Lane, atRenewal
	case pipeline.DeadLetter:
		return e.Lane, atLetter
	case pipeline.Isolate:
		return e.Lane, atLetter
	case pipeline.Release:
		return e.Lane, atRelease
	case pipeline.Commit:
		if e.Intent.Empty() {
			return e.Lane, atCommit
		}
		return e.Lane, atIntent
	case pipeline.Insert:
		return e.Lane, atFlight
	case pipeline.Settle:
		return e.Lane, atSettle
	case pipeline.Publish:
		return e.Lane, atAcked
	case pipeline.AskGate:
		return e.Lane, atGate
	case pipeline.AskOwners:
		return e.Lane, atTakeOver
	case pipeline.TakeOver:
		return e.Lane, atTakeOver
	case pipeline.AwaitOver:
		if e.Lane == pipeline.LaneGate {
			return e.Lane, atTakeOver
		}
		return e.Lane, atOver
	case pipeline.AskFacts:
		return e.Lane, atJudge
	case pipeline.Read:
		return e.Lane, atRead
	case pipeline.Sleep:
		if e.Lane == pipeline.LaneGate {
			return e.Lane, atClosed
		}
		return e.Lane, atBackOff
	}
	panic(fmt.Sprintf("%T is no step", e))
}

// effectOf finds the effect that a request goes by.
func effectOf(what any) pipeline.Effect {
	switch x := what.(type) {
	case *sent:
		return x.e
	case *asked:
		return x.e
	case *pipeline.Commit:
		return *x
	case *pipeline.Read:
		return *x
	case *pipeline.Isolate:
		return *x
	case *pipeline.AskOwners:
		return *x
	case *pipeline.AwaitOver:
		return *x
	case *pipeline.DeadLetter:
		return *x
	}
	panic(fmt.Sprintf("%T holds no effect", what))
}

// steps lists what the lanes of a worker wait for.
func (wk *worker) steps() []at {
	var out []at
	m := reflect.ValueOf(wk.m).Elem()
	for lane, ref := range []string{"mainRef", "gateRef"} {
		if m.FieldByName(ref).Uint() == 0 {
			continue
		}
		step := wk.doing[lane]
		if step == atFlight && wk.w.house.halfWritten(wk) {
			step = atView
		}
		out = append(out, step)
	}
	if len(out) == 0 {
		out = append(out, atIdle)
	}
	return out
}

// halfWritten: an insert of this worker is in the table and on its way to the views.
func (h *house) halfWritten(wk *worker) bool {
	for _, s := range h.running {
		if s.worker == wk && s.inTable && len(h.views) > 0 {
			return true
		}
	}
	return false
}

// Coverage counts how often each fault met a worker at each step.
type Coverage struct {
	Met [faults][atSteps]int
}

// Add sums up.
func (c *Coverage) Add(o *Coverage) {
	for f := range c.Met {
		for s := range c.Met[f] {
			c.Met[f][s] += o.Met[f][s]
		}
	}
}

// A reason is why faults can't meet a step.
type reason struct {
	faults []fault
	steps  []at
	why    string
}

// reasons are all there are: any other pair of a fault and a step has to be met.
func reasons() []reason {
	asks := []at{atAssigned, atClaim, atRenewal, atLate, atLetter, atRelease, atSettle, atAcked, atGate, atTakeOver, atOver, atJudge, atRead}
	stores := []at{atAssigned, atClaim, atRenewal, atLate, atRelease, atSettle, atAcked, atGate, atTakeOver}
	waits := []at{atIdle, atClosed, atBackOff}
	return []reason{
		{[]fault{faultLateInsert, faultLostAck}, butFor(atFlight), "befalls an insert on its way, or its acknowledgement"},
		{[]fault{faultLateCommit}, butFor(atIntent, atCommit), "befalls a commit on its way"},
		{[]fault{faultNoLog}, butFor(atJudge), "the log is asked by the judge alone"},
		{[]fault{faultPartStore}, butFor(stores...), "befalls a call to the store"},
		{[]fault{faultLateLanding}, []at{atIntent, atCommit}, "is the late commit"},
		{[]fault{faultLateLanding}, []at{atFlight, atView}, "is the late insert"},
		{[]fault{faultLostReply}, []at{atFlight, atView}, "is the lost ack"},
		{[]fault{faultLateLanding, faultLostReply}, waits, "nothing is asked"},
		{[]fault{faultLateLanding}, butFor(append(append([]at{atIntent, atCommit, atFlight, atView}, waits...), asks...)...), "nothing is asked"},
	}
}

func butFor(steps ...at) []at {
	var out []at
next:
	for s := range atSteps {
		for _, x := range steps {
			if s == x {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

// unmet gives for each pair why it can't be met, "" where it can.
func unmet() (why [faults][atSteps]string) {
	for _, r := range reasons() {
		for _, f := range r.faults {
			for _, s := range r.steps {
				why[f][s] = r.why
			}
		}
	}
	return why
}

// Gaps lists the pairs that were not met without a reason, and those that were
// met although there is one.
func (c *Coverage) Gaps() (missing []Aim, wrong []string) {
	why := unmet()
	for f := range faults {
		for s := range atSteps {
			switch n := c.Met[f][s]; {
			case n == 0 && why[f][s] == "":
				missing = append(missing, Aim{Fault: f, Step: s})
			case n > 0 && why[f][s] != "":
				wrong = append(wrong, fmt.Sprintf("%s met %s %d times, which has a reason not to be: %s", faultNames[f], atNames[s], n, why[f][s]))
			}
		}
	}
	return missing, wrong
}

// String is the table of faults and steps, a letter where there is a reason, and
// the reasons.
func (c *Coverage) String() string {
	var b strings.Builder
	b.WriteString("| fault | " + strings.Join(atNames[:], " | ") + " |\n|---|" + strings.Repeat("---|", int(atSteps)) + "\n")
	letters, legend := map[string]string{}, ""
	for _, r := range reasons() {
		if letters[r.why] == "" {
			letters[r.why] = string(rune('a' + len(letters)))
			legend += letters[r.why] + ": " + r.why + ". "
		}
	}
	why := unmet()
	for f := range faults {
		b.WriteString("| " + faultNames[f])
		for s := range atSteps {
			cell := fmt.Sprint(c.Met[f][s])
			if c.Met[f][s] == 0 && why[f][s] != "" {
				cell = letters[why[f][s]]
			}
			b.WriteString(" | " + cell)
		}
		b.WriteString(" |\n")
	}
	return b.String() + "\n" + strings.TrimSpace(legend) + "\n"
}

// Aim has a fault wait for a step.
type Aim struct {
	Fault fault
	Step  at
	On    bool
}

func (a Aim) String() string { return faultNames[a.Fault] + " @ " + atNames[a.Step] }

// ParseAim reads what String wrote.
func ParseAim(text string) (Aim, error) {
	f, s, _ := strings.Cut(text, " @ ")
	a := Aim{Fault: fault(slices.Index(faultNames[:], f)), Step: at(slices.Index(atNames[:], s))}
	if a.Fault < 0 || a.Step < 0 {
		return a, fmt.Errorf("aim %q: want fault @ step, of %s and %s", text, strings.Join(faultNames[:], ", "), strings.Join(atNames[:], ", "))
	}
	return a, nil
}

// Draw draws a world in which the fault is there, and things that lead to the step.
func (a Aim) Draw(seed uint64) Params {
	p := Draw(seed)
	p.Aim = a
	p.Aim.On = true
	p.Faults[a.Fault] = 3
	p.Steps *= 2
	switch a.Step {
	case atRelease, atLetter, atLate:
		p.Poison, p.Undecoded = 15, 6
	case atView:
		p.Views = max(p.Views, 1)
	case atTakeOver, atClosed, atGate:
		p.Faults[faultResetForward]++
		p.Partitions, p.Keys = max(p.Partitions, 2), p.Records
	case atSettle, atJudge, atOver, atRead:
		p.Faults[faultCrash]++
		p.Faults[faultResetBack]++
	case atRenewal, atBackOff:
		p.Faults[faultBusy]++
		p.Faults[faultServerCrash]++
	}
	if a.Fault == faultViewBroken {
		p.Views = max(p.Views, 1)
	}
	if a.Fault == faultPartStore {
		p.Groups = 2
	}
	return p
}

// aims: the fault that is aimed waits for its step. It meets it half of the times.
func (w *world) aims() bool {
	a := w.p.Aim
	if !a.On || w.budget[a.Fault] == 0 || metByRequests(a.Fault) {
		return false
	}
	for _, p := range w.procs {
		for _, wk := range p.workers {
			if wk == nil || !p.alive || p.paused {
				continue
			}
			for _, s := range wk.steps() {
				if s == a.Step && w.pick(4) == 0 && w.strike(a.Fault) {
					w.use(a.Fault)
					return true
				}
			}
		}
	}
	return false
}
