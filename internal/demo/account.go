package demo

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncesink/oncesink/internal/progress"
)

// Account is what a run ends with. Rows and totals are from SQL on the engine, offsets from Kafka.
type Account struct {
	Seed    uint64  `json:"seed"`
	Seconds float64 `json:"seconds"`

	Produced  int64 `json:"produced"`   // records that the producer sent, its duplicates included
	SentAgain int64 `json:"sent_again"` // records that were sent once more by hand
	Records   int64 `json:"records"`    // in Kafka, by its end offsets
	True      Table `json:"true"`       // what the distinct settlements add up to

	Table       Table       `json:"table"`
	Report      Totals      `json:"report"`
	DeadLetters int64       `json:"dead_letters"`
	Partitions  []Partition `json:"partitions"`
	Seen        Seen        `json:"seen"`

	Doors   Doors   `json:"doors"`
	Crashes []Crash `json:"crashes"`
	Cuts    int     `json:"cuts"` // acknowledgements
	Planned Planned `json:"planned"`

	Classes Classes `json:"account"` // see Judge

	Troubles []string `json:"troubles,omitempty"` // of the sink processes
	Balanced bool     `json:"balanced"`
	Faults   []string `json:"faults,omitempty"` // what is off, a sentence each
	Logs     string   `json:"logs,omitempty"`
}

// Amount counts 0.0001 of money.
type Amount int64

// Table is the content of the target, or what it should be.
type Table struct {
	Rows   int64  `json:"rows"`
	Keys   int64  `json:"keys"`
	Amount Amount `json:"amount"`
	Qty    int64  `json:"qty"`
}

// Totals are those of the report.
type Totals struct {
	Events int64  `json:"events"`
	Amount Amount `json:"amount"`
	Qty    int64  `json:"qty"`
}

// Partition is how far Kafka has it and the group has committed it.
type Partition struct {
	Partition int32 `json:"partition"`
	End       int64 `json:"end"`
	Committed int64 `json:"committed"`
}

// Doors are where duplicates came in.
type Doors struct {
	Producer  int64    `json:"producer"`  // records that repeat an earlier one
	Elsewhere int64    `json:"elsewhere"` // of these, in another partition
	Cuts      Sends    `json:"cuts"`      // rows that came to the engine twice from one sink process
	Restarts  Sends    `json:"restarts"`  // … from two of them
	ByHand    []Resend `json:"by_hand"`
}

// Classes are what became of the records that the group has consumed: each is in one of them.
type Classes struct {
	Consumed    int64 `json:"consumed"` // committed past
	Inserted    int64 `json:"inserted"` // its own row is in the table
	Producer    int64 `json:"duplicates_of_the_producer"`
	ByHand      int64 `json:"duplicates_by_hand"`
	DeadLetters int64 `json:"dead_letters"`
}

func (c Classes) sum() int64 { return c.Inserted + c.Producer + c.ByHand + c.DeadLetters }

// Crash is one kill -9.
type Crash struct {
	At        string `json:"at"`
	Inserting int    `json:"inserting"` // partitions that had sent an insert and had no answer
}

// Planned is how many faults a run wants to survive.
type Planned struct {
	Crashes int `json:"crashes"`
	Cuts    int `json:"cuts"`
}

// Judge finds what is off.
func (a *Account) Judge() {
	a.Classes = Classes{Inserted: a.Table.Rows, Producer: a.Doors.Producer, ByHand: a.SentAgain, DeadLetters: a.DeadLetters}
	for _, p := range a.Partitions {
		a.Classes.Consumed += p.Committed
	}
	a.Faults = append(a.contents(), a.proof()...)
	a.Balanced = len(a.Faults) == 0
}

// contents are the faults of what the sink left behind.
func (a *Account) contents() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if want := a.Produced + a.SentAgain; a.Records != want {
		say("Kafka has %s, but %s were sent", count(a.Records, "record"), progress.Thousands(want))
	}
	if lost := a.True.Keys - a.Table.Keys; lost > 0 {
		say("%s lost: not in the table", are(lost, "settlement"))
	} else if lost < 0 {
		say("the table has %s that nobody sent", count(-lost, "key"))
	}
	if twice := a.Table.Rows - a.Table.Keys; twice > 0 {
		say("%s of the table %s a key that is there already", count(twice, "row"), map[bool]string{true: "has", false: "have"}[twice == 1])
	}
	if sound := a.Table.Keys == a.True.Keys && a.Table.Rows == a.Table.Keys; sound && a.Table != a.True {
		say("the table's sums are wrong: amount %s and qty %s, and not %s and %s", a.Table.Amount.Text(), progress.Thousands(a.Table.Qty), a.True.Amount.Text(), progress.Thousands(a.True.Qty))
	}
	if want := (Totals{a.True.Keys, a.True.Amount, a.True.Qty}); a.Report != want {
		say("the report shows %s, amount %s and qty %s, and not %s, %s and %s", count(a.Report.Events, "event"), a.Report.Amount.Text(), progress.Thousands(a.Report.Qty),
			progress.Thousands(want.Events), want.Amount.Text(), progress.Thousands(want.Qty))
	}
	if a.Seen.Twice > 0 {
		say("for a moment %s too many in the table", are(a.Seen.Twice, "row"))
	}
	if up := a.Seen.Ahead; up.Events > 0 || up.Amount > 0 || up.Qty > 0 {
		say("for a moment the report was ahead of what was there: by %s, amount %s and qty %s", count(up.Events, "event"), up.Amount.Text(), progress.Thousands(up.Qty))
	}
	if a.DeadLetters > 0 {
		say("%s went to the dead-letter topic, though every record is sound", count(a.DeadLetters, "record"))
	}
	for _, p := range a.Partitions {
		if p.Committed != p.End {
			say("partition %d is committed up to %s, and its end is %s", p.Partition, progress.Thousands(p.Committed), progress.Thousands(p.End))
		}
	}
	return out
}

// proof are the faults of the run itself: a door that didn't open proves nothing.
func (a *Account) proof() []string {
	out := append([]string(nil), a.Troubles...)
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if a.Doors.Producer == 0 {
		say("the producer repeated nothing, so that door was not tried")
	}
	if a.Cuts == 0 {
		say("no acknowledgement was cut, so that door was not tried")
	}
	if n := len(a.Crashes); n < a.Planned.Crashes {
		say("the sink was killed %s instead of %s", times(n), times(a.Planned.Crashes))
	}
	inserting := 0
	for _, c := range a.Crashes {
		inserting += c.Inserting
	}
	if a.Planned.Crashes > 0 && inserting == 0 {
		say("no kill hit an insert, so that door was not tried")
	}
	partly := 0
	for _, s := range a.Doors.ByHand {
		if s.Written > 0 && s.Written < s.Records {
			partly++
		}
	}
	if partly == 0 {
		say("nothing was sent by hand that was partly written, so that door was not tried")
	}
	if a.Seen.Samples == 0 {
		say("nobody looked at the table while the sink was running")
	}
	return out
}

// String is the amount in full digits, without trailing zeros.
func (a Amount) String() string {
	const units = 10_000
	sign, v := "", a
	if v < 0 {
		sign, v = "-", -v
	}
	text := fmt.Sprintf("%s%d.%04d", sign, v/units, v%units)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}

// Text is String with the digits before the point in groups, for people.
func (a Amount) Text() string {
	whole, rest, _ := strings.Cut(a.String(), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n == 0 { // a minus before a zero would be lost
		return a.String()
	}
	if rest != "" {
		rest = "." + rest
	}
	return progress.Thousands(n) + rest
}

// MarshalJSON writes the digits: a float would round them.
func (a Amount) MarshalJSON() ([]byte, error) { return json.Marshal(json.Number(a.String())) }

func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "sh") {
		thing += "e"
	}
	return progress.Thousands(n) + " " + thing + "s"
}

func are(n int64, thing string) string {
	if n == 1 {
		return count(n, thing) + " is"
	}
	return count(n, thing) + " are"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}
