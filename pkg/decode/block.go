package decode

import (
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// Block holds decoded rows, column by column, ready to be sent. It belongs to
// one goroutine at a time.
type Block struct {
	plan     *JSON
	rows     int
	cols     []column
	input    proto.Input
	defaults *Defaults
	event    clock

	// fields are the record's fields by number; learned ones follow those of
	// the plan. Number 0 is a stand-in for names that are not remembered.
	fields []*field
	index  map[string]int
	// after predicts which field follows a field, from the last record; the
	// first field follows number 0.
	after []int32
	// seen holds the round in which a field was last met.
	seen  []uint32
	round uint32
	// seeds are the hashes of the names, where the Hasher is a FieldSeeder.
	seeds []uint64

	// inside counts unknown fields inside of objects, by path.
	inside map[string]int64

	filled  int
	scan    scanner
	tok     token
	keyText []byte
	path    []byte
}

const (
	maxLearned     = 256 // unknown names that a block remembers
	maxLearnedName = 128
)

// NewBlock returns an empty block of the columns that are sent: all but
// MATERIALIZED and ALIAS.
func (d *JSON) NewBlock() *Block {
	b := &Block{plan: d, index: map[string]int{}, inside: map[string]int64{}}
	b.scan.hasher, b.scan.unknown = d.hasher, b.countNested
	b.cols, b.input = d.newColumns()
	if d.event >= 0 {
		b.event = newClock(b.cols[d.event], d.unit)
	}
	b.addField(&field{quoted: neverPredicted, unknown: true})
	for _, f := range d.root.fields {
		b.addField(f)
	}
	return b
}

func (d *JSON) newColumns() ([]column, proto.Input) {
	var cols []column
	var input proto.Input
	for _, c := range d.cols {
		col, err := newColumn(c.typ, d.setup(c.source))
		if err != nil {
			panic(err) // NewJSON has made one of each
		}
		cols = append(cols, col)
		input = append(input, proto.InputColumn{Name: c.Name, Data: col})
	}
	return cols, input
}

func (b *Block) addField(f *field) int {
	i := len(b.fields)
	if i > 0 {
		b.index[f.name] = i
	}
	if s := b.plan.seeder; s != nil {
		b.seeds = append(b.seeds, s.Seed(f.name))
	}
	b.fields = append(b.fields, f)
	b.after = append(b.after, 0)
	b.seen = append(b.seen, 0)
	return i
}

// Rows returns the number of rows.
func (b *Block) Rows() int { return b.rows }

// Input returns the columns for an insert. It is the same for the life of the
// block; ch-go must not be using it while the block changes.
func (b *Block) Input() proto.Input { return b.input }

// Input is what ch-go sends: columns by name.
type Input = proto.Input

// Columns returns the named columns, in that order; names that the block does
// not have are left out. They stay the block's.
func (b *Block) Columns(names ...string) Input {
	out := make(Input, 0, len(names))
	for _, name := range names {
		for _, c := range b.input {
			if c.Name == name {
				out = append(out, c)
			}
		}
	}
	return out
}

// Truncate drops the rows from n on.
func (b *Block) Truncate(n int) {
	if n > b.rows {
		panic("decode: Truncate to more rows than there are")
	}
	for _, c := range b.cols {
		c.truncate(n) // also where it has n rows: a fault may have left parts
	}
	b.rows = n
}

// Keep drops the rows i with sel[i] false; the others move up. There must be
// an entry for each row.
func (b *Block) Keep(sel []bool) {
	if len(sel) != b.rows {
		panic("decode: Keep needs one entry for each row")
	}
	for _, c := range b.cols {
		c.keep(sel)
	}
	b.rows = 0
	for _, k := range sel {
		if k {
			b.rows++
		}
	}
}

// Reset drops all rows and keeps the memory, the defaults and what was
// learned of the records' shape.
func (b *Block) Reset() {
	for _, c := range b.cols {
		c.Reset()
	}
	b.rows = 0
}

// Bytes returns the memory that the rows take.
func (b *Block) Bytes() int {
	n := 0
	for _, c := range b.cols {
		n += c.size()
	}
	return n
}

// AppendFrom appends row i of a block of the same plan.
func (b *Block) AppendFrom(src *Block, i int) {
	if b.plan != src.plan {
		panic("decode: AppendFrom a block of another plan")
	}
	for n, c := range b.cols {
		c.appendFrom(src.cols[n], i)
	}
	b.rows++
}

// UnknownFields calls f for each unknown field met since the last call, by
// path, with the number of times; names beyond the first 256, or longer than
// 128 bytes, are counted together under "".
func (b *Block) UnknownFields(f func(path string, count int64)) {
	for _, fl := range b.fields {
		if fl.unknown && fl.count > 0 {
			f(fl.path, fl.count)
			fl.count = 0
		}
	}
	for path, n := range b.inside {
		if n > 0 {
			f(path, n)
			b.inside[path] = 0
		}
	}
}

func (b *Block) countNested(parent string, name []byte) {
	b.path = append(append(append(b.path[:0], parent...), '.'), name...)
	n, known := b.inside[string(b.path)]
	if !known && (len(b.inside) >= maxLearned || len(b.path) > maxLearnedName) {
		b.fields[0].count++
		return
	}
	b.inside[string(b.path)] = n + 1
}

// clock reads event times, in milliseconds, out of a column.
type clock func(row int) (ms int64, fits bool)

// newClock returns nil for columns that hold no times.
func newClock(c column, unit time.Duration) clock {
	if n, is := c.(*nullCol); is {
		c = n.val
	}
	switch c := c.(type) {
	case *lowCardCol:
		dict, spare := newClock(c.dict, unit), newClock(c.spare, unit)
		if dict == nil {
			return nil
		}
		first := c.dict
		return func(row int) (int64, bool) {
			if c.dict == first {
				return dict(int(c.keys[row]))
			}
			return spare(int(c.keys[row])) // they change places
		}
	case timed:
		return func(row int) (int64, bool) { return c.unixMilli(row), true }
	case interface{ integer(int) (int64, bool) }:
		return func(row int) (int64, bool) {
			v, fits := c.integer(row)
			if unit <= time.Millisecond {
				ms, _ := floorDiv(v, int64(time.Millisecond/unit))
				return ms, fits
			}
			f := int64(unit / time.Millisecond)
			return v * f, fits && v*f/f == v
		}
	}
	return nil
}

// Defaults are the values for fields that records lack, of the columns whose
// DEFAULT the server has to evaluate.
type Defaults struct {
	plan *JSON
	cols []column
	why  []string // by column: why there is no value
}

// NeedsDefaults returns the columns with a DEFAULT expression. A record may
// lack their fields only while the block has their values (Block.SetDefaults).
func (d *JSON) NeedsDefaults() []Column {
	var list []Column
	for _, c := range d.cols {
		if c.computed && !c.key {
			list = append(list, c.Column)
		}
	}
	return list
}

// NewDefaults returns Defaults without values.
func (d *JSON) NewDefaults() *Defaults {
	f := &Defaults{plan: d, why: make([]string, len(d.cols))}
	f.cols, _ = d.newColumns()
	return f
}

// Query returns a SELECT of the values of these columns. One whose expression
// refers to other columns makes the server refuse the whole statement, so it
// is best asked for alone after a failure, and then Unavailable.
func (f *Defaults) Query(names ...string) string {
	var list []string
	for _, name := range names {
		c := f.plan.cols[f.plan.column(name)]
		list = append(list, "CAST(("+c.DefaultExpr+"), "+quoteSQL(c.Type, '\'')+") AS "+quoteSQL(name, '`'))
	}
	return "SELECT " + strings.Join(list, ", ")
}

func quoteSQL(s string, q byte) string {
	s = strings.ReplaceAll(s, `\`, `\\`)
	return string(q) + strings.ReplaceAll(s, string(q), `\`+string(q)) + string(q)
}

// Results returns where the answer of Query is received.
func (f *Defaults) Results(names ...string) proto.Results {
	var list proto.Results
	for _, name := range names {
		list = append(list, proto.ResultColumn{Name: name, Data: f.cols[f.plan.column(name)]})
	}
	return list
}

// Unavailable notes that the server cannot evaluate the DEFAULT of a column on
// its own. A record without that field is then rejected as default_depends.
func (f *Defaults) Unavailable(name, why string) {
	i := f.plan.column(name)
	f.why[i] = why
	f.cols[i].Reset()
}

// SetDefaults gives the block the values for absent fields. They serve until
// the next call: a batch whose rows must not differ between tries sets them
// once, before its first row.
func (b *Block) SetDefaults(f *Defaults) {
	if f != nil && f.plan != b.plan {
		panic("decode: SetDefaults of another plan")
	}
	b.defaults = f
}
