package decode

import (
	"fmt"
	"strconv"

	"github.com/ClickHouse/ch-go/proto"
)

// tupleCol is a Tuple: with names from an object, whose members it looks up to
// the letter, without names from an array of exactly its length. A member that
// the object lacks, and one that the tuple does not have, are what such a field
// of the record is.
type tupleCol struct {
	typ   proto.ColumnType
	names []string // nil: the elements have none
	at    string   // where it is in the record, for counts
	null  []bool   // by element: has NULL for what is absent
	elems []column
	lax   bool // members without an element are counted, not refused
	zero  bool // absent elements become their type's default
	rows  int  // of a tuple without elements
}

func newTuple(t *typeName, set setup) (column, error) {
	c := &tupleCol{typ: proto.ColumnType(t.text), at: set.path, lax: set.lax, zero: set.zero}
	seen := map[string]bool{}
	for i, a := range t.args {
		e, err := t.elem(i)
		if err != nil {
			return nil, err
		}
		in := set
		in.path = set.path + "." + a.name
		col, err := newColumn(e, in)
		if err != nil {
			return nil, err
		}
		if (a.name != "") != (t.args[0].name != "") || a.name != "" && seen[a.name] {
			return nil, fmt.Errorf("type %q: names are missing or not unique", t.text)
		}
		seen[a.name] = true
		if a.name != "" {
			c.names = append(c.names, a.name)
		}
		c.elems = append(c.elems, col)
		p, err := e.plain()
		if err != nil {
			return nil, err
		}
		c.null = append(c.null, p.nullable())
	}
	return c, nil
}

func (c *tupleCol) Type() proto.ColumnType { return c.typ }

func (c *tupleCol) Rows() int {
	if len(c.elems) == 0 {
		return c.rows
	}
	return c.elems[0].Rows()
}

func (c *tupleCol) Reset() {
	c.rows = 0
	for _, e := range c.elems {
		e.Reset()
	}
}

func (c *tupleCol) size() int {
	n := c.rows
	for _, e := range c.elems {
		n += e.size()
	}
	return n
}

func (c *tupleCol) truncate(n int) {
	c.rows = min(c.rows, n)
	for _, e := range c.elems {
		e.truncate(n)
	}
}

func (c *tupleCol) keep(sel []bool) {
	if len(c.elems) == 0 {
		c.rows = 0
		for _, k := range sel {
			if k {
				c.rows++
			}
		}
	}
	for _, e := range c.elems {
		e.keep(sel)
	}
}

func (c *tupleCol) appendZero() {
	if len(c.elems) == 0 {
		c.rows++
	}
	for _, e := range c.elems {
		e.appendZero()
	}
}

func (c *tupleCol) appendFrom(src column, i int) {
	if len(c.elems) == 0 {
		c.rows++
	}
	for n, e := range c.elems {
		e.appendFrom(src.(*tupleCol).elems[n], i)
	}
}

func (c *tupleCol) appendToken(t *token, s *scanner) fault {
	want := kArr
	if c.names != nil {
		want = kObj
	}
	if t.kind != want {
		return notString(t)
	}
	outer := s.data
	s.data = t.raw
	var f fault
	if c.names != nil {
		f = c.members(s)
	} else {
		f = c.elements(s)
	}
	s.data = outer
	return f
}

func (c *tupleCol) elements(s *scanner) fault {
	t := s.push()
	defer s.pop()
	n, p := 0, s.space(1)
	for more := s.data[p] != ']'; more; n++ {
		var f fault
		if p, f = s.whole(p, t); f != ok {
			return f
		}
		if n == len(c.elems) {
			return fLength
		}
		if f = c.elems[n].appendToken(t, s); f != ok {
			return s.inside(strconv.Itoa(n+1), f)
		}
		if p, more, f = s.next(p, ']'); f != ok {
			return f
		}
	}
	if n != len(c.elems) {
		return fLength
	}
	if n == 0 {
		c.rows++
	}
	return ok
}

// members reads the object. No name is in it twice: it was walked before.
func (c *tupleCol) members(s *scanner) fault {
	t := s.push()
	defer s.pop()
	row, found, last := c.Rows(), 0, -1
	p := s.space(1)
	for more := s.data[p] != '}'; more; {
		var f fault
		if p, f = s.name(p, t); f != ok {
			return f
		}
		i := c.element(t.str, last+1)
		if i < 0 {
			if !c.lax {
				return s.inside(string(t.str), fUnknownMember)
			}
			s.unknown(c.at, t.str)
		}
		if p, f = s.whole(p, t); f != ok {
			return f
		}
		if i >= 0 {
			if f = c.elems[i].appendToken(t, s); f != ok {
				return s.inside(c.names[i], f)
			}
			found++
			last = i
		}
		if p, more, f = s.next(p, '}'); f != ok {
			return f
		}
	}
	if found == len(c.elems) {
		return ok
	}
	for i, e := range c.elems {
		if e.Rows() == row {
			if !c.null[i] && !c.zero {
				return s.inside(c.names[i], fMissingMember)
			}
			e.appendZero()
		}
	}
	return ok
}

// element returns the element of that name, most likely the one at i; -1: none.
func (c *tupleCol) element(name []byte, i int) int {
	if i < len(c.names) && c.names[i] == string(name) {
		return i
	}
	for i, n := range c.names {
		if n == string(name) {
			return i
		}
	}
	return -1
}

func (c *tupleCol) appendKey(dst []byte, _ int) ([]byte, bool) { return dst, false }

func (c *tupleCol) EncodeState(b *proto.Buffer)       { encodeState(b, c.elems...) }
func (c *tupleCol) DecodeState(r *proto.Reader) error { return decodeState(r, c.elems...) }

// A tuple without elements is a byte a row.
const emptyTuple = '0'

func (c *tupleCol) EncodeColumn(b *proto.Buffer) {
	for range c.rows {
		b.PutByte(emptyTuple)
	}
	for _, e := range c.elems {
		e.EncodeColumn(b)
	}
}

func (c *tupleCol) WriteColumn(w *proto.Writer) {
	if c.rows > 0 {
		w.ChainBuffer(c.EncodeColumn)
	}
	for _, e := range c.elems {
		e.WriteColumn(w)
	}
}

func (c *tupleCol) DecodeColumn(r *proto.Reader, rows int) error {
	if len(c.elems) == 0 {
		c.rows = rows
		_, err := r.ReadRaw(rows)
		return err
	}
	for _, e := range c.elems {
		if err := e.DecodeColumn(r, rows); err != nil {
			return err
		}
	}
	return nil
}
