package decode

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
)

// nullCol is Nullable(T). null becomes NULL and nothing else does: "" is not.
type nullCol struct {
	typ   proto.ColumnType
	nulls []byte
	val   column
}

func (c *nullCol) Type() proto.ColumnType { return c.typ }
func (c *nullCol) Rows() int              { return len(c.nulls) }
func (c *nullCol) Reset()                 { c.nulls = c.nulls[:0]; c.val.Reset() }
func (c *nullCol) size() int              { return len(c.nulls) + c.val.size() }
func (c *nullCol) truncate(n int)         { c.nulls = c.nulls[:n]; c.val.truncate(n) }
func (c *nullCol) keep(sel []bool)        { c.nulls = keepValues(c.nulls, sel); c.val.keep(sel) }

func (c *nullCol) appendToken(t *token, s *scanner) fault {
	if t.kind == kNull {
		c.appendZero()
		return ok
	}
	c.nulls = append(c.nulls, 0)
	return c.val.appendToken(t, s)
}

func (c *nullCol) appendZero() {
	c.nulls = append(c.nulls, 1)
	c.val.appendZero()
}

func (c *nullCol) appendFrom(src column, i int) {
	from := src.(*nullCol)
	c.nulls = append(c.nulls, from.nulls[i])
	c.val.appendFrom(from.val, i)
}

func (c *nullCol) appendKey(dst []byte, i int) ([]byte, bool) {
	if c.nulls[i] != 0 {
		return dst, false
	}
	return c.val.appendKey(dst, i)
}

func (c *nullCol) EncodeState(b *proto.Buffer)       { encodeState(b, c.val) }
func (c *nullCol) DecodeState(r *proto.Reader) error { return decodeState(r, c.val) }

func (c *nullCol) EncodeColumn(b *proto.Buffer) {
	b.PutRaw(c.nulls)
	c.val.EncodeColumn(b)
}

func (c *nullCol) WriteColumn(w *proto.Writer) {
	if len(c.nulls) > 0 {
		w.ChainWrite(c.nulls)
	}
	c.val.WriteColumn(w)
}

func (c *nullCol) DecodeColumn(r *proto.Reader, rows int) error {
	c.nulls = append(c.nulls[:0], make([]byte, rows)...)
	if err := r.ReadFull(c.nulls); err != nil {
		return err
	}
	return c.val.DecodeColumn(r, rows)
}

// offsets are the ends of rows of several elements, as the wire has them.
type offsets struct {
	vec[uint64]
	elems []bool // selection of elements, for keep
}

func (o *offsets) end(row int) int {
	if row == 0 {
		return 0
	}
	return int(o.v[row-1])
}

// keepElems turns a selection of rows into one of elements, and moves the ends.
func (o *offsets) keepElems(sel []bool) []bool {
	o.elems = o.elems[:0]
	w, from, to := 0, uint64(0), uint64(0)
	for i, k := range sel {
		end := o.v[i]
		for range end - from {
			o.elems = append(o.elems, k)
		}
		if k {
			to += end - from
			o.v[w] = to
			w++
		}
		from = end
	}
	o.v = o.v[:w]
	return o.elems
}

// decode reads the ends and returns the number of elements.
func (o *offsets) decode(r *proto.Reader, rows int) (int, error) {
	if err := o.DecodeColumn(r, rows); err != nil {
		return 0, err
	}
	last := uint64(0)
	for _, end := range o.v {
		if end < last || end > maxText {
			return 0, fmt.Errorf("array ends at %d after %d", end, last)
		}
		last = end
	}
	return int(last), nil
}

// arrCol is Array(T).
type arrCol struct {
	typ proto.ColumnType
	off offsets
	val column
}

func (c *arrCol) Type() proto.ColumnType { return c.typ }
func (c *arrCol) Rows() int              { return c.off.Rows() }
func (c *arrCol) Reset()                 { c.off.Reset(); c.val.Reset() }
func (c *arrCol) size() int              { return c.off.size() + c.val.size() }
func (c *arrCol) truncate(n int)         { c.off.truncate(n); c.val.truncate(c.off.end(n)) }
func (c *arrCol) keep(sel []bool)        { c.val.keep(c.off.keepElems(sel)) }
func (c *arrCol) appendZero()            { c.off.v = append(c.off.v, uint64(c.val.Rows())) }

func (c *arrCol) appendToken(t *token, s *scanner) fault {
	if t.kind != kArr {
		return notString(t)
	}
	outer := s.data
	s.data = t.raw
	f := c.elements(s)
	s.data = outer
	if f == ok {
		c.appendZero()
	}
	return f
}

// elements appends the elements of the array that is s.data. It was walked
// before, so it is well formed.
func (c *arrCol) elements(s *scanner) fault {
	t := s.push()
	defer s.pop()
	p := s.space(1)
	for more := s.data[p] != ']'; more; {
		var f fault
		if p, f = s.whole(p, t); f != ok {
			return f
		}
		if f = c.val.appendToken(t, s); f != ok {
			return f
		}
		if p, more, f = s.next(p, ']'); f != ok {
			return f
		}
	}
	return ok
}

// whole reads the value at p, arrays and objects with their text, in text
// that was walked before.
func (s *scanner) whole(p int, t *token) (int, fault) {
	from := p
	p, f := s.scalar(p, t)
	if f == ok && t.kind >= kArr {
		if p, f = s.walk(p, 1, nil, true); f == ok {
			t.raw = s.data[from:p]
		}
	}
	return p, f
}

func (c *arrCol) appendFrom(src column, i int) {
	from := src.(*arrCol)
	for e := from.off.end(i); e < from.off.end(i+1); e++ {
		c.val.appendFrom(from.val, e)
	}
	c.appendZero()
}

func (c *arrCol) appendKey(dst []byte, _ int) ([]byte, bool) { return dst, false }

func (c *arrCol) EncodeState(b *proto.Buffer)       { encodeState(b, c.val) }
func (c *arrCol) DecodeState(r *proto.Reader) error { return decodeState(r, c.val) }

func (c *arrCol) EncodeColumn(b *proto.Buffer) {
	c.off.EncodeColumn(b)
	c.val.EncodeColumn(b)
}

func (c *arrCol) WriteColumn(w *proto.Writer) {
	c.off.WriteColumn(w)
	c.val.WriteColumn(w)
}

func (c *arrCol) DecodeColumn(r *proto.Reader, rows int) error {
	n, err := c.off.decode(r, rows)
	if err != nil {
		return err
	}
	return c.val.DecodeColumn(r, n)
}

// encodeState and decodeState handle the head that a LowCardinality inside
// puts before the whole column.
func encodeState(b *proto.Buffer, cols ...column) {
	for _, c := range cols {
		if s, is := c.(proto.StateEncoder); is {
			s.EncodeState(b)
		}
	}
}

func decodeState(r *proto.Reader, cols ...column) error {
	for _, c := range cols {
		if s, is := c.(proto.StateDecoder); is {
			if err := s.DecodeState(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendMilli is for a Nullable time only, see stampedColumn.
func (c *nullCol) appendMilli(ms int64) fault {
	c.nulls = append(c.nulls, 0)
	return c.val.(stamped).appendMilli(ms)
}
