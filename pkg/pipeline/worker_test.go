package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/dedup"
)

// outage is a server that can't evaluate DEFAULT expressions for a while.
type outage struct{ left int }

func (o *outage) Evaluate(_ context.Context, d *decode.Defaults) error {
	if o.left > 0 {
		o.left--
		return errors.New("connection refused")
	}
	d.Unavailable("made", "not asked here")
	return nil
}

// defaulted is a worker of a table with a DEFAULT column. It notes its states.
func defaulted(t *testing.T, away int) (w *worker, states *[]string) {
	t.Helper()
	d, err := decode.NewJSON(decode.Options{
		Columns: []decode.Column{{Name: "id", Type: "UInt64"}, {Name: "made", Type: "DateTime", DefaultKind: "DEFAULT", DefaultExpr: "now()"}},
		Key:     []string{"id"}, Hasher: dedup.Hasher{},
	})
	if err != nil {
		t.Fatal(err)
	}
	states = &[]string{}
	events := Quiet()
	events.State = func(_ string, _ int32, s State, reason, _ string) {
		*states = append(*states, strings.TrimSpace(string(s)+" "+reason))
	}
	target := &Target{Decoder: d, Defaults: &outage{away}}
	w = &worker{
		shell: &Shell{events: events, Options: Options{Clock: time.Now}}, target: target, ctx: t.Context(), pool: newBlockPool(target),
		machine: NewMachine(Config{Metadata: 4096}), reader: newReader(d),
	}
	w.machine.started = true
	return w, states
}

const away = "connection refused"

// A server that can't be asked says nothing of the records: rows that are to be
// decoded again wait for it. It stopped their partition as if the table had
// changed.
func TestAnOutageWhileRowsAreDecodedAgainIsWaitedFor(t *testing.T) {
	w, states := defaulted(t, 2)
	record := &kgo.Record{Value: []byte(`{"id":7,"made":1700000000}`)}
	b := &Batch{Records: []Record{{}}, Data: &material{raw: []*kgo.Record{record}}}
	block, fresh, err := w.decoded(Set{Parts: []Part{{Batch: b, Rows: []int32{0}}}})
	if err != nil || !fresh || block.Rows() != 1 {
		t.Fatalf("the rows are not there again: %v", err)
	}
	why := "waiting evaluate the DEFAULT expressions of the columns: " + away
	if want := []string{why, why, "running"}; !slices.Equal(*states, want) {
		t.Errorf("it told %q, want %q", *states, want)
	}
}

// What changed is told from what is away: it does stop the partition.
func TestRowsThatNoLongerDecodeStopThePartition(t *testing.T) {
	w, _ := defaulted(t, 0)
	b := &Batch{Records: []Record{{}}, Data: &material{raw: []*kgo.Record{{Value: []byte(`{"id":"seven"}`)}}}}
	_, _, err := w.decoded(Set{Parts: []Part{{Batch: b, Rows: []int32{0}}}})
	if !changed(err) {
		t.Fatalf("error %v, want a change", err)
	}
	if _, stops := w.cannotDecode(err).(Broken); !stops {
		t.Error("it does not stop the partition")
	}
}

// A batch that could not be begun was told as waiting for ever.
func TestABatchThatCouldNotBeBegunIsToldAsRunningOnceItIs(t *testing.T) {
	w, states := defaulted(t, 2)
	w.queue = []*kgo.Record{{Value: []byte(`{"id":1}`)}}
	for range 4 {
		if w.fill == nil {
			w.openFilling()
		}
	}
	if want := []string{"waiting evaluate the DEFAULT expressions of the columns: " + away, "running"}; !slices.Equal(*states, want) {
		t.Errorf("it told %q, want %q", *states, want)
	}
}
