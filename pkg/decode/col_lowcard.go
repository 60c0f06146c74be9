package decode

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/ClickHouse/ch-go/proto"
)

// dictionary is a column that a LowCardinality can refer into.
type dictionary interface {
	column
	at(i int) []byte
	appendBytes(s []byte) fault
}

// lowCardCol is LowCardinality(T), built as the rows come. The dictionary
// holds exactly the values of the rows, in the order of their first use; in
// front of them, where T is Nullable, stands the value that means NULL.
type lowCardCol struct {
	typ      proto.ColumnType
	nullable bool
	width    int // of a FixedString, otherwise 0
	dict     dictionary
	spare    dictionary // the other half of keep
	one      dictionary // of values that are no text: the one being appended
	keys     []uint32
	born     []uint32 // by dictionary entry: the row that brought it
	seed     maphash.Seed
	slots    []uint32 // hash table: entry + 1, 0 is free
	remap    []uint32
	pad      []byte
}

// lowCardTypes are those that the server takes, some of them only when it is
// told that they are meant (allow_suspicious_low_cardinality_types).
var lowCardTypes = map[string]bool{
	"String": true, "FixedString": true, "Bool": true, "UUID": true, "IPv4": true, "IPv6": true, "Date": true, "Date32": true, "DateTime": true, "Time": true,
	"Int8": true, "Int16": true, "Int32": true, "Int64": true, "Int128": true, "Int256": true,
	"UInt8": true, "UInt16": true, "UInt32": true, "UInt64": true, "UInt128": true, "UInt256": true,
	"BFloat16": true, "Float32": true, "Float64": true,
}

func newLowCard(t *typeName, set setup) (column, error) {
	inner, err := t.elem(0)
	if err != nil {
		return nil, err
	}
	c := &lowCardCol{typ: proto.ColumnType(t.text), seed: maphash.MakeSeed(), slots: make([]uint32, 64)}
	if inner.name == "Nullable" {
		c.nullable = true
		if inner, err = inner.elem(0); err != nil {
			return nil, err
		}
	}
	if !lowCardTypes[inner.name] && !intervals[inner.name] {
		return nil, fmt.Errorf("type %q is not supported", t.text)
	}
	for _, d := range []*dictionary{&c.dict, &c.spare, &c.one} {
		col, err := newColumn(inner, set)
		if err != nil {
			return nil, err
		}
		*d = col.(dictionary)
	}
	switch d := c.dict.(type) {
	case *fixedStrCol:
		c.width, c.pad, c.one = d.n, make([]byte, d.n), nil
	case *strCol:
		c.one = nil
	}
	c.Reset()
	return c, nil
}

func (c *lowCardCol) Type() proto.ColumnType { return c.typ }
func (c *lowCardCol) Rows() int              { return len(c.keys) }
func (c *lowCardCol) size() int              { return 4*len(c.keys) + c.dict.size() + 4*len(c.born) }

func (c *lowCardCol) Reset() {
	c.keys = c.keys[:0]
	c.resetDict()
}

func (c *lowCardCol) resetDict() {
	c.dict.Reset()
	c.born = c.born[:0]
	clear(c.slots)
	if c.nullable {
		c.dict.appendZero()
		c.born = append(c.born, 0)
	}
}

func (c *lowCardCol) appendToken(t *token, s *scanner) fault {
	if c.one != nil {
		return c.appendValue(t, s)
	}
	return c.appendText(t)
}

// appendValue takes what the type inside takes.
func (c *lowCardCol) appendValue(t *token, s *scanner) fault {
	if t.kind == kNull && c.nullable {
		c.keys = append(c.keys, 0)
		return ok
	}
	c.one.Reset()
	if f := c.one.appendToken(t, s); f != ok {
		return f
	}
	return c.appendBytes(c.one.at(0))
}

func (c *lowCardCol) appendText(t *token) fault {
	if t.kind != kStr {
		if t.kind == kNull && c.nullable {
			c.keys = append(c.keys, 0)
			return ok
		}
		return notString(t)
	}
	s := t.str
	if c.width > 0 {
		if len(s) > c.width {
			return fRange
		}
		clear(c.pad[copy(c.pad, s):])
		s = c.pad
	}
	return c.appendBytes(s)
}

// appendBytes appends a value; of a FixedString, padded.
func (c *lowCardCol) appendBytes(s []byte) fault {
	if n := len(c.keys); n > 0 { // many columns repeat the value of the row before
		k := c.keys[n-1]
		if int(k) >= c.first() && string(c.dict.at(int(k))) == string(s) {
			c.keys = append(c.keys, k)
			return ok
		}
	}
	key, f := c.entry(s, len(c.keys))
	if f == ok {
		c.keys = append(c.keys, key)
	}
	return f
}

// entry returns the dictionary entry of a value, a new one if need be.
func (c *lowCardCol) entry(s []byte, row int) (uint32, fault) {
	mask := uint64(len(c.slots) - 1)
	i := maphash.Bytes(c.seed, s) & mask
	for ; c.slots[i] != 0; i = (i + 1) & mask {
		if e := c.slots[i] - 1; string(c.dict.at(int(e))) == string(s) {
			return e, ok
		}
	}
	e := uint32(len(c.born))
	if f := c.dict.appendBytes(s); f != ok {
		return 0, f
	}
	c.born = append(c.born, uint32(row))
	c.slots[i] = e + 1
	if 2*len(c.born) > len(c.slots) {
		c.slots = make([]uint32, 2*len(c.slots))
		c.rehash()
	}
	return e, ok
}

func (c *lowCardCol) rehash() {
	clear(c.slots)
	mask := uint64(len(c.slots) - 1)
	for e := c.first(); e < len(c.born); e++ {
		i := maphash.Bytes(c.seed, c.dict.at(e)) & mask
		for c.slots[i] != 0 {
			i = (i + 1) & mask
		}
		c.slots[i] = uint32(e) + 1
	}
}

// first is the number of entries that are not values.
func (c *lowCardCol) first() int {
	if c.nullable {
		return 1
	}
	return 0
}

func (c *lowCardCol) appendZero() {
	if c.nullable {
		c.keys = append(c.keys, 0)
		return
	}
	if c.one != nil {
		c.one.Reset()
		c.one.appendZero()
		c.appendBytes(c.one.at(0))
		return
	}
	clear(c.pad)
	c.appendBytes(c.pad)
}

func (c *lowCardCol) appendFrom(src column, i int) {
	from := src.(*lowCardCol)
	if k := from.keys[i]; c.nullable && k == 0 {
		c.keys = append(c.keys, 0)
	} else {
		c.appendBytes(from.dict.at(int(k)))
	}
}

// truncate also takes back the entries that the dropped rows brought. They
// are the newest in the hash table, so emptying their slots breaks no chain.
func (c *lowCardCol) truncate(n int) {
	c.keys = c.keys[:n]
	mask := uint64(len(c.slots) - 1)
	for e := len(c.born) - 1; e >= c.first() && int(c.born[e]) >= n; e-- {
		i := maphash.Bytes(c.seed, c.dict.at(e)) & mask
		for c.slots[i] != uint32(e)+1 {
			i = (i + 1) & mask
		}
		c.slots[i] = 0
		c.dict.truncate(e)
		c.born = c.born[:e]
	}
}

func (c *lowCardCol) keep(sel []bool) {
	const unset = ^uint32(0)
	c.remap = c.remap[:0]
	for range c.born {
		c.remap = append(c.remap, unset)
	}
	if c.nullable {
		c.remap[0] = 0
	}
	old := c.dict
	c.dict, c.spare = c.spare, old
	c.resetDict()
	w := 0
	for i, k := range sel {
		if !k {
			continue
		}
		key := c.keys[i]
		if c.remap[key] == unset {
			c.remap[key] = uint32(len(c.born))
			c.dict.appendBytes(old.at(int(key)))
			c.born = append(c.born, uint32(w))
		}
		c.keys[w] = c.remap[key]
		w++
	}
	c.keys = c.keys[:w]
	c.rehash()
}

func (c *lowCardCol) appendKey(dst []byte, i int) ([]byte, bool) {
	k := c.keys[i]
	if c.nullable && k == 0 {
		return dst, false
	}
	return c.dict.appendKey(dst, int(k))
}

// The wire form: version once a column; a word of flags and key width, the
// dictionary, the keys.
const (
	lowCardVersion  = 1
	lowCardFlags    = 1<<9 | 1<<10 // own dictionary, to be read anew
	lowCardKeyWidth = 0xff
)

func (c *lowCardCol) EncodeState(b *proto.Buffer) { b.PutInt64(lowCardVersion) }

func (c *lowCardCol) EncodeColumn(b *proto.Buffer) {
	if len(c.keys) == 0 {
		return
	}
	width := uint64(0)
	switch {
	case len(c.born) > 1<<16:
		width = 2
	case len(c.born) > 1<<8:
		width = 1
	}
	b.PutUInt64(lowCardFlags | width)
	b.PutUInt64(uint64(len(c.born)))
	c.dict.EncodeColumn(b)
	b.PutUInt64(uint64(len(c.keys)))
	switch width {
	case 0:
		for _, k := range c.keys {
			b.Buf = append(b.Buf, byte(k))
		}
	case 1:
		for _, k := range c.keys {
			b.Buf = binary.LittleEndian.AppendUint16(b.Buf, uint16(k))
		}
	case 2:
		for _, k := range c.keys {
			b.Buf = binary.LittleEndian.AppendUint32(b.Buf, k)
		}
	}
}

func (c *lowCardCol) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

func (c *lowCardCol) DecodeState(r *proto.Reader) error {
	v, err := r.Int64()
	if err == nil && v != lowCardVersion {
		err = fmt.Errorf("LowCardinality version %d, want %d", v, lowCardVersion)
	}
	return err
}

func (c *lowCardCol) DecodeColumn(r *proto.Reader, rows int) error {
	c.Reset()
	if rows == 0 {
		return nil
	}
	head, err := r.UInt64()
	if err != nil {
		return err
	}
	entries, err := r.UInt64()
	if err != nil {
		return err
	}
	if head&(1<<9) == 0 || head&lowCardKeyWidth > 2 || entries > 1<<31 {
		return fmt.Errorf("LowCardinality header %#x, %d entries: not supported", head, entries)
	}
	if err := c.spare.DecodeColumn(r, int(entries)); err != nil {
		return err
	}
	n, err := r.UInt64()
	if err != nil {
		return err
	}
	if n != uint64(rows) {
		return fmt.Errorf("LowCardinality has %d keys for %d rows", n, rows)
	}
	width := 1 << (head & lowCardKeyWidth)
	raw, err := r.ReadRaw(rows * width)
	if err != nil {
		return err
	}
	for ; len(raw) > 0; raw = raw[width:] {
		var k uint64
		for i := width - 1; i >= 0; i-- {
			k = k<<8 | uint64(raw[i])
		}
		if k >= entries {
			return fmt.Errorf("LowCardinality key %d of %d entries", k, entries)
		}
		if c.nullable && k == 0 {
			c.keys = append(c.keys, 0)
		} else {
			c.appendBytes(c.spare.at(int(k)))
		}
	}
	return nil
}
