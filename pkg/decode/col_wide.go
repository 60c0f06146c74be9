package decode

import "github.com/ClickHouse/ch-go/proto"

// wideInt is a two's complement integer as the wire has it, of 128 or 256 bits.
type wideInt[T any] interface {
	*T
	set(v u256)
	// get returns the value with its sign in all 256 bits.
	get() u256
}

// i128 is a 128-bit two's complement integer as the wire has it.
type i128 struct{ lo, hi uint64 }

func (v *i128) set(w u256) { v.lo, v.hi = w[0], w[1] }

func (v *i128) get() u256 {
	sign := uint64(int64(v.hi) >> 63)
	return u256{v.lo, v.hi, sign, sign}
}

// ui128 is the same without a sign.
type ui128 struct{ lo, hi uint64 }

func (v *ui128) set(w u256) { v.lo, v.hi = w[0], w[1] }
func (v *ui128) get() u256  { return u256{v.lo, v.hi} }

type i256 u256

func (v *i256) set(w u256) { *v = i256(w) }
func (v *i256) get() u256  { return u256(*v) }

// magnitude takes the sign off.
func magnitude(v u256, signed bool) (bool, u256) {
	if signed && int64(v[3]) < 0 {
		return true, v.negate()
	}
	return false, v
}

// wideCol is Int128, UInt128, Int256 or UInt256.
type wideCol[T any, P wideInt[T]] struct {
	vec[T]
	signed   bool
	max, min u256 // largest magnitudes above and below zero
}

func newWide(typ proto.ColumnType, name string) column {
	all := ^uint64(0)
	half := uint64(1) << 63
	switch name {
	case "Int128":
		return &wideCol[i128, *i128]{vec[i128]{typ: typ}, true, u256{all, half - 1}, u256{0, half}}
	case "UInt128":
		return &wideCol[ui128, *ui128]{vec[ui128]{typ: typ}, false, u256{all, all}, u256{}}
	case "Int256":
		return &wideCol[i256, *i256]{vec[i256]{typ: typ}, true, u256{all, all, all, half - 1}, u256{0, 0, 0, half}}
	}
	return &wideCol[i256, *i256]{vec[i256]{typ: typ}, false, u256{all, all, all, all}, u256{}}
}

func (c *wideCol[T, P]) appendToken(t *token, _ *scanner) fault {
	var in token
	t, f := t.number(&in)
	if f != ok {
		return f
	}
	m, f := t.scaled256(0)
	if f != ok {
		return f
	}
	limit := c.max
	if t.neg {
		limit = c.min
	}
	if limit.less(m) {
		return fRange
	}
	if t.neg {
		m = m.negate()
	}
	c.v = append(c.v, c.zero)
	P(&c.v[len(c.v)-1]).set(m) // in place: a variable would be moved to the heap
	return ok
}

func (c *wideCol[T, P]) appendKey(dst []byte, i int) ([]byte, bool) {
	neg, m := magnitude(P(&c.v[i]).get(), c.signed)
	return appendKeyWide(dst, neg, m), true
}

// integer returns row i, and whether int64 holds it.
func (c *wideCol[T, P]) integer(i int) (int64, bool) {
	neg, m := magnitude(P(&c.v[i]).get(), c.signed)
	fits := m[1]|m[2]|m[3] == 0 && (m[0] < 1<<63 || neg && m[0] == 1<<63)
	if neg {
		return -int64(m[0]), fits
	}
	return int64(m[0]), fits
}

// dec256Col is a Decimal of more than 38 digits.
type dec256Col struct {
	vec[i256]
	scale int
	limit u256 // 10^P
}

func (c *dec256Col) appendToken(t *token, _ *scanner) fault {
	var in token
	t, f := t.number(&in)
	if f != ok {
		return f
	}
	v, f := t.scaled256(c.scale)
	if f != ok {
		return f
	}
	if !v.less(c.limit) {
		return fRange
	}
	if t.neg {
		v = v.negate()
	}
	c.v = append(c.v, i256(v))
	return ok
}

func (c *dec256Col) appendKey(dst []byte, i int) ([]byte, bool) {
	neg, m := magnitude(u256(c.v[i]), true)
	return appendKeyDecimal256(dst, neg, m, c.scale), true
}
