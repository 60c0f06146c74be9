package decode

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
)

// qbitCol is QBit(T, N), a vector of N floats, from an array of that length. The
// wire has it turned: for each bit of T, the most significant first, a column of
// FixedString with one bit of every element, the first in the last byte.
type qbitCol struct {
	typ proto.ColumnType
	n   int
	bit int // of an element
	arr arrCol
	val dictionary // the elements, one vector behind the other
}

func newQBit(t *typeName, set setup) (column, error) {
	inner, err := t.elem(0)
	if err != nil {
		return nil, err
	}
	bit := map[string]int{"BFloat16": 16, "Float32": 32, "Float64": 64}[inner.name]
	n, err := t.number(1, 1, 1<<20)
	if err != nil || bit == 0 || len(t.args) > 2 {
		return nil, fmt.Errorf("type %q is not supported: a vector of floats and its length are wanted", t.text)
	}
	val, err := newColumn(inner, set)
	if err != nil {
		return nil, err
	}
	return &qbitCol{typ: proto.ColumnType(t.text), n: n, bit: bit, arr: arrCol{val: val}, val: val.(dictionary)}, nil
}

func (c *qbitCol) Type() proto.ColumnType { return c.typ }
func (c *qbitCol) Rows() int              { return c.val.Rows() / c.n }
func (c *qbitCol) Reset()                 { c.val.Reset() }
func (c *qbitCol) size() int              { return c.val.size() }
func (c *qbitCol) truncate(n int)         { c.val.truncate(n * c.n) }

func (c *qbitCol) appendToken(t *token, s *scanner) fault {
	if t.kind != kArr {
		return notString(t)
	}
	want := c.val.Rows() + c.n
	outer := s.data
	s.data = t.raw
	f := c.arr.elements(s)
	s.data = outer
	if f == ok && c.val.Rows() != want {
		return fLength
	}
	return f
}

func (c *qbitCol) appendZero() {
	for range c.n {
		c.val.appendZero()
	}
}

func (c *qbitCol) appendFrom(src column, i int) {
	for e := range c.n {
		c.val.appendFrom(src.(*qbitCol).val, i*c.n+e)
	}
}

func (c *qbitCol) keep(sel []bool) {
	all := make([]bool, 0, len(sel)*c.n)
	for _, k := range sel {
		for range c.n {
			all = append(all, k)
		}
	}
	c.val.keep(all)
}

func (c *qbitCol) appendKey(dst []byte, _ int) ([]byte, bool) { return dst, false }

// place is where element e of a vector is in a plane.
func (c *qbitCol) place(e int) (at int, mask byte) {
	return (c.n+7)/8 - 1 - e/8, 1 << (e % 8)
}

func (c *qbitCol) EncodeColumn(b *proto.Buffer) {
	width := (c.n + 7) / 8
	for bit := c.bit - 1; bit >= 0; bit-- {
		for row := range c.Rows() {
			from := len(b.Buf)
			b.Buf = append(b.Buf, make([]byte, width)...)
			for e := range c.n {
				if c.val.at(row*c.n + e)[bit/8]>>(bit%8)&1 == 1 {
					at, mask := c.place(e)
					b.Buf[from+at] |= mask
				}
			}
		}
	}
}

func (c *qbitCol) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

func (c *qbitCol) DecodeColumn(r *proto.Reader, rows int) error {
	c.Reset()
	for range rows {
		c.appendZero()
	}
	width := (c.n + 7) / 8
	for bit := c.bit - 1; bit >= 0; bit-- {
		plane, err := r.ReadRaw(width * rows)
		if err != nil {
			return err
		}
		for row := range rows {
			for e := range c.n {
				if at, mask := c.place(e); plane[row*width+at]&mask != 0 {
					c.val.at(row*c.n + e)[bit/8] |= 1 << (bit % 8)
				}
			}
		}
	}
	return nil
}
