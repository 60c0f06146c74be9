package offsets

import (
	"encoding/base64"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

var (
	tableA = [16]byte{0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	tableB = [16]byte{0xB0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

// golden intents: their text is a persistent format and never changes.
var golden = []struct {
	name string
	in   Intent
	text string
}{
	{"one batch, one table", Intent{Entries: []Entry{{
		Range: batcher.Range{First: 1000, Last: 1999},
		Tables: []Sent{{Table: tableA, Rows: 997, Digest: 0x0123456789abcdef, FirstAttempt: at(1790000000123),
			Deadline: at(1790000005123), Replica: "ch-1:9000", Attempt: 1, Nonce: 0xfeedbeef}},
	}}}, "os1.AAGgAQIDBAUGBwgJCgsMDQ4PAQljaC0xOjkwMDD2sYPFmGgB0A_nBwABAOUHASNFZ4mrze8AkE4EAf7tvu8lzeE0"},
	{"views, pieces, late rows, two tables and replicas", Intent{MaxPartitions: 100, Entries: []Entry{
		{Range: batcher.Range{First: 5_000_000_000, Last: 5_000_099_999}, Tables: []Sent{
			{Table: tableA, Rows: 100000, Digest: math.MaxUint64, FirstAttempt: at(1790000000000), Deadline: at(1790000005000), Replica: "a", Attempt: 3, Mixed: true, Vouched: true},
			{Table: tableB, Rows: 1, Digest: 0, FirstAttempt: at(1789999999000), Deadline: at(1790000005000), Replica: "b"}}},
		{Range: batcher.Range{First: 5_000_000_000, Last: 5_000_099_999}, Late: []int64{5_000_000_007, 5_000_000_100, 5_000_000_101, 5_000_000_102, 5_000_000_103}, Tables: []Sent{
			{Table: tableB, Rows: 5, Digest: 7, FirstAttempt: at(1790000009000), Deadline: at(1790000014000)}}},
	}}, "os1.ZAKgAQIDBAUGBwgJCgsMDQ4PsAECAwQFBgcICQoLDA0ODwIBYQFigLCDxZhoAoDIr6Aln40GAAIAoI0G__________8AkE4HAwAAAAABAQAAAAAAAAAAzw_gXQgAAAAAAACfjQYCAgcAXAMBAQUAAAAAAAAAB9CMAZBOAAAAAAAAC6MSXw"},
	{"moved back by an operator", Intent{Passed: 105_114}, "os1.AAAAAACatQY5I565"},
	{"idle, one hash-tag group", Intent{Epochs: []uint64{1790000000123456}}, "ose1.AYCJvqLb_60Gz4JqPg"},
	{"four hash-tag groups, one of them never met", Intent{Passed: 7, Epochs: []uint64{1790000000123456, 1790000000123789, 0, 1790000000000000}},
		"os1.AAAAAAAHBICJvqLb_60GmgWZjr6i2_-tBoCAr6Lb_60Grkg12g"},
}

func TestIntentFormatNeverChanges(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			text, err := g.in.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if text != g.text {
				t.Errorf("encoded\n got %s\nwant %s", text, g.text)
			}
			back, err := Decode(g.text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*back, g.in) {
				t.Errorf("decoded\n got %+v\nwant %+v", *back, g.in)
			}
		})
	}
}

// randomIntent draws one from the whole range of the format.
func randomIntent(r *rand.Rand, entries, tables int) *Intent {
	in := &Intent{MaxPartitions: r.IntN(200)}
	if r.IntN(4) == 0 {
		in.Passed = 1 + r.Int64N(1<<r.IntN(62))
	}
	for range r.IntN(4) * r.IntN(11) {
		in.Epochs = append(in.Epochs, r.Uint64N(1<<r.IntN(56)))
	}
	ids := make([][16]byte, tables)
	for i := range ids {
		for j := range ids[i] {
			ids[i][j] = byte(r.Uint32())
		}
	}
	replicas := []string{"", "ch-0:9000", "ch-1:9000", "clickhouse-2.example:9440"}
	for range entries {
		first := r.Int64N(1 << r.IntN(62))
		e := Entry{Range: batcher.Range{First: first, Last: first + r.Int64N(1<<r.IntN(35))}}
		if r.IntN(3) == 0 {
			for o := e.Range.First; e.Range.Contains(o) && len(e.Late) < 40; o += 1 + r.Int64N(1<<r.IntN(20)) {
				e.Late = append(e.Late, o)
			}
		}
		for _, id := range ids {
			firstMs := int64(1790000000000) + r.Int64N(1<<r.IntN(40))
			e.Tables = append(e.Tables, Sent{Table: id, Rows: r.IntN(maxRows), Digest: r.Uint64(),
				FirstAttempt: at(firstMs), Deadline: at(firstMs + r.Int64N(1<<r.IntN(34))),
				Replica: replicas[r.IntN(len(replicas))], Mixed: r.IntN(2) == 0, Attempt: r.IntN(maxAttempt)})
		}
		in.Entries = append(in.Entries, e)
	}
	return in
}

func TestIntentComesBackAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		entries, tables := 1+r.IntN(20), 1+r.IntN(3)
		in := randomIntent(r, entries, tables)
		text, err := in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, in) {
			t.Fatalf("got %+v\nwant %+v", back, in)
		}
		late := 0
		for _, e := range in.Entries {
			late += len(e.Late)
		}
		if worst := WorstCase(entries, tables, late, "ch-0:9000", "ch-1:9000", "clickhouse-2.example:9440") + EpochsMost(len(in.Epochs)); len(text) > worst || in.Size() != len(text) {
			t.Fatalf("%d entries, %d tables, %d late: %d characters (Size %d), worst case told %d", entries, tables, late, len(text), in.Size(), worst)
		}
	}
}

// TestWorstCaseHoldsAtTheEdgesOfTheFormat: a batch that has claimed must find
// room, also when every figure is as long as it can be.
func TestWorstCaseHoldsAtTheEdgesOfTheFormat(t *testing.T) {
	in := &Intent{MaxPartitions: maxPartitions}
	replica := strings.Repeat("r", maxReplica)
	for i := range 16 {
		first := int64(0)
		if i%2 == 0 {
			first = math.MaxInt64 - maxSpan
		}
		e := Entry{Range: batcher.Range{First: first, Last: first + maxSpan}, Late: []int64{first + maxSpan}}
		for j := range 2 {
			ms := int64(1790000000000)
			if i+j > 0 {
				ms -= maxDrift
			}
			e.Tables = append(e.Tables, Sent{Table: [16]byte{byte(j)}, Rows: maxRows, FirstAttempt: at(ms), Deadline: at(ms + maxWait),
				Replica: replica, Attempt: maxAttempt, Mixed: true})
		}
		in.Entries = append(in.Entries, e)
	}
	for i := range maxEpochs {
		in.Epochs = append(in.Epochs, uint64(i%2)*maxEpoch)
	}
	text, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	worst := WorstCase(16, 2, 16, replica) + EpochsMost(maxEpochs)
	if len(text) > worst {
		t.Errorf("%d characters, worst case told %d", len(text), worst)
	}
	if worst > 4096 {
		t.Errorf("16 entries for 2 tables may need %d characters, more than a broker's default", worst)
	}
	if back, err := Decode(text); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

func TestSixteenRangesForTwoTablesAreShort(t *testing.T) {
	in := &Intent{}
	for i := range int64(16) {
		e := Entry{Range: batcher.Range{First: 7_000_000_000 + i*100_000, Last: 7_000_000_000 + (i+1)*100_000 - 1}}
		for j := range 2 {
			ms := 1790000000000 + i*700
			e.Tables = append(e.Tables, Sent{Table: [16]byte{byte(j), 1}, Rows: 99_000, Digest: math.MaxUint64, FirstAttempt: at(ms), Deadline: at(ms + 5000), Replica: "clickhouse-0.example:9000", Attempt: 1})
		}
		in.Entries = append(in.Entries, e)
	}
	if n := in.Size(); n == 0 || n > 1500 {
		t.Errorf("%d characters, want at most 1500", n)
	}
}

func TestForeignMetadataIsNoIntent(t *testing.T) {
	for _, text := range []string{"", "consumer-1-5f4b", "os", "os.", "osx.AAAA", "os01.AAAA", "OS1.AAAA", " os1.AAAA", "{\"os1.\":1}", "os1", "\x00\xff"} {
		if in, err := Decode(text); in != nil || err != nil {
			t.Errorf("%q: got %v, %v, want no intent", text, in, err)
		}
	}
}

func TestUnknownVersionIsToldNotSkipped(t *testing.T) {
	for _, text := range []string{"os2.AAAA", "os2.", "os10.whatever!", "os99999999999999999999.x"} {
		in, err := Decode(text)
		var newer *NewerError
		if in != nil || !errors.As(err, &newer) {
			t.Errorf("%q: got %v, %v, want NewerError", text, in, err)
		}
	}
}

func TestDamagedIntentIsNeverAccepted(t *testing.T) {
	for _, g := range golden {
		text, err := g.in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		reject := func(bad string) {
			t.Helper()
			in, err := Decode(bad)
			var corrupt *CorruptError
			if in != nil || !errors.As(err, &corrupt) {
				t.Errorf("%q: got %v, %v, want CorruptError", bad, in, err)
			}
		}
		for n := strings.IndexByte(text, '.') + 1; n < len(text); n++ {
			reject(text[:n])
			for _, c := range []byte("A_-9!=") {
				if text[n] != c {
					reject(text[:n] + string(c) + text[n+1:])
				}
			}
		}
		reject(text + "A")
		reject(text + "\n")
		reject(text + "==")
	}
}

// seal gives a body a right checksum: what only a bug could have written.
func seal(body []byte) string { return sealed(prefix, slices.Clone(body)) }

func TestSealedNonsenseIsRefusedWithoutMuchMemory(t *testing.T) {
	good, _ := golden[0].in.Encode()
	raw, _ := base64.RawURLEncoding.DecodeString(good[len(prefix):])
	body := raw[:len(raw)-4]
	cases := map[string][]byte{
		"nothing":           {},
		"no entries":        {0, 0, 0, 0, 0},
		"trailing byte":     append(append([]byte{}, body...), 0),
		"no epochs":         append(append([]byte{}, body...), 0, 0),
		"too many epochs":   append(append([]byte{}, body...), 0, 33, 2),
		"a negative epoch":  append(append([]byte{}, body...), 0, 1, 1),
		"a long list":       {0, 127},
		"a longer list":     {0, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"overlong varint":   append([]byte{0x80, 0}, body[1:]...),
		"unfolding run":     {0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 3, 0, 0xff, 0xff, 0xff, 1, 0, 0xff, 0xff, 0xff, 1},
		"unused table":      append(append([]byte{0, 2}, body[2:18]...), append(make([]byte, 16), body[18:]...)...),
		"cut in the middle": body[:30],
	}
	for name, body := range cases {
		if in, err := Decode(seal(body)); in != nil || err == nil {
			t.Errorf("%s: got %+v, %v, want CorruptError", name, in, err)
		}
	}
	if in, err := Decode(seal(body)); in == nil || err != nil {
		t.Errorf("the untouched body: %v", err)
	}
}

func TestEncodeRefusesWhatItCouldNotGiveBack(t *testing.T) {
	cases := map[string]func(*Intent){
		"no entries":            func(in *Intent) { in.Entries = nil },
		"no tables":             func(in *Intent) { in.Entries[0].Tables = nil },
		"negative first":        func(in *Intent) { in.Entries[0].Range.First = -1 },
		"last before first":     func(in *Intent) { in.Entries[0].Range.Last = 999 },
		"late outside":          func(in *Intent) { in.Entries[0].Late = []int64{2000} },
		"late out of order":     func(in *Intent) { in.Entries[0].Late = []int64{1001, 1001} },
		"late empty":            func(in *Intent) { in.Entries[0].Late = []int64{} },
		"negative rows":         func(in *Intent) { in.Entries[0].Tables[0].Rows = -1 },
		"attempt out of range":  func(in *Intent) { in.Entries[0].Tables[0].Attempt = maxAttempt + 1 },
		"first attempt missing": func(in *Intent) { in.Entries[0].Tables[0].FirstAttempt = time.Time{} },
		"deadline missing":      func(in *Intent) { in.Entries[0].Tables[0].Deadline = time.Time{} },
		"replica's name":        func(in *Intent) { in.Entries[0].Tables[0].Replica = strings.Repeat("x", 256) },
		"negative L":            func(in *Intent) { in.MaxPartitions = -1 },
		"too many epochs":       func(in *Intent) { in.Epochs = make([]uint64, maxEpochs+1) },
		"an epoch too large":    func(in *Intent) { in.Epochs = []uint64{maxEpoch + 1} },
	}
	for name, spoil := range cases {
		in, err := Decode(golden[0].text)
		if err != nil {
			t.Fatal(err)
		}
		spoil(in)
		if text, err := in.Encode(); err == nil || text != "" || in.Size() != 0 {
			t.Errorf("%s: encoded as %q", name, text)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range golden {
		text, _ := g.in.Encode()
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Add("")
	f.Add("os2.AAAA")
	f.Add("consumer-1")
	f.Fuzz(func(t *testing.T, text string) {
		in, err := Decode(text)
		if err != nil && in != nil {
			t.Fatalf("both an intent and an error: %v", err)
		}
		if in == nil {
			return
		}
		if again, err := in.Encode(); err != nil || again != text {
			t.Fatalf("accepted %q but would write %q (%v)", text, again, err)
		}
	})
}

// FuzzSealed gives random bodies a right checksum, so that the fuzzer gets
// past it to the parser.
func FuzzSealed(f *testing.F) {
	for _, g := range golden {
		text, _ := g.in.Encode()
		_, text, _ = strings.Cut(text, ".")
		raw, _ := base64.RawURLEncoding.DecodeString(text)
		f.Add(raw[:len(raw)-4])
	}
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		if in, err := Decode(sealed(idle, slices.Clone(body))); (in == nil) == (err == nil) {
			t.Fatalf("idle: intent %v, error %v: one of both must be there", in, err)
		}
		text := seal(body)
		in, err := Decode(text)
		if (in == nil) == (err == nil) {
			t.Fatalf("intent %v, error %v: one of both must be there", in, err)
		}
		if in == nil {
			return
		}
		if again, err := in.Encode(); err != nil || again != text {
			t.Fatalf("accepted %q but would write %q (%v)", text, again, err)
		}
	})
}

// What an insert under way may hold is what its range holds, or the rows named.
func TestAnIntentListsWhatItsInsertsMayHold(t *testing.T) {
	in := &Intent{Entries: []Entry{
		{Range: batcher.Range{First: 10, Last: 19}},
		{Range: batcher.Range{First: 20, Last: 29}, Late: []int64{22, 25}},
	}}
	for offset, want := range map[int64]bool{9: false, 10: true, 19: true, 20: false, 22: true, 23: false, 25: true, 30: false} {
		if got := in.Lists(offset); got != want {
			t.Errorf("%d: %v, want %v", offset, got, want)
		}
	}
	if (*Intent)(nil).Lists(0) {
		t.Error("no intent lists something")
	}
}
