package decode

import (
	"math"

	"github.com/ClickHouse/ch-go/proto"
)

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type intCol[T integer] struct {
	vec[T]
	max, min uint64 // largest magnitudes above and below zero
}

func newInt[T integer](typ proto.ColumnType, above, below uint64) *intCol[T] {
	return &intCol[T]{vec[T]{typ: typ}, above, below}
}

func (c *intCol[T]) appendToken(t *token, _ *scanner) fault {
	if t.kind == kNum && t.exp == 0 && !t.big && !t.neg && t.mant <= c.max {
		c.v = append(c.v, T(t.mant))
		return ok
	}
	return c.slow(t)
}

// slow takes the less usual spellings of integers: -7, 1e3, 1.0, "7".
func (c *intCol[T]) slow(t *token) fault {
	var in token
	t, f := t.number(&in)
	if f != ok {
		return f
	}
	m, f := t.scaled(0)
	if f != ok {
		return f
	}
	limit := c.max
	if t.neg {
		limit = c.min
	}
	if m.hi != 0 || m.lo > limit {
		return fRange
	}
	if t.neg {
		m.lo = -m.lo
	}
	c.v = append(c.v, T(m.lo))
	return ok
}

func (c *intCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	v := c.v[i]
	if v < 0 {
		return appendKeyInt(dst, true, -uint64(v)), true
	}
	return appendKeyInt(dst, false, uint64(v)), true
}

// integer returns row i, and whether int64 holds it.
func (c *intCol[T]) integer(i int) (int64, bool) {
	v := c.v[i]
	return int64(v), v < 0 || uint64(v) <= math.MaxInt64
}

type floatCol[T float32 | float64] struct {
	vec[T]
	bits int
}

func (c *floatCol[T]) appendToken(t *token, _ *scanner) fault {
	var in token
	t, f := t.number(&in)
	if f != ok {
		return f
	}
	v, f := t.float(c.bits)
	if f != ok {
		return f
	}
	c.v = append(c.v, T(v))
	return ok
}

func (c *floatCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	return appendKeyFloat(dst, float64(c.v[i])), true
}

type boolCol struct{ vec[uint8] }

func (c *boolCol) appendToken(t *token, _ *scanner) fault {
	switch t.kind {
	case kTrue:
		c.v = append(c.v, 1)
	case kFalse:
		c.v = append(c.v, 0)
	case kNull:
		return fNull
	default:
		return fWrongType
	}
	return ok
}

func (c *boolCol) appendKey(dst []byte, i int) ([]byte, bool) {
	return append(dst, keyBool, c.v[i]), true
}

// decimal is the spec of a Decimal(P, S): values are integers in units of
// 10^-S, of fewer than P+1 digits.
type decimal struct {
	scale int
	limit u128 // 10^P, where P is up to 38
}

func newDecimal(t *typeName) (column, error) {
	d, digits, err := parseDecimal(t)
	if err != nil {
		return nil, err
	}
	typ := proto.ColumnType(t.text)
	switch {
	case digits <= 9:
		return &decCol[int32]{vec[int32]{typ: typ}, d}, nil
	case digits <= 18:
		return &decCol[int64]{vec[int64]{typ: typ}, d}, nil
	case digits <= 38:
		return &dec128Col{vec[i128]{typ: typ}, d}, nil
	}
	return &dec256Col{vec[i256]{typ: typ}, d.scale, pow10of256(digits)}, nil
}

func parseDecimal(t *typeName) (decimal, int, error) {
	digits, scale := 10, 0
	var err error
	switch t.name {
	case "Decimal32":
		digits = 9
	case "Decimal64":
		digits = 18
	case "Decimal128":
		digits = 38
	case "Decimal256":
		digits = 76
	default:
		if len(t.args) > 0 {
			if digits, err = t.number(0, 1, 76); err != nil {
				return decimal{}, 0, err
			}
		}
		if len(t.args) > 1 {
			scale, err = t.number(1, 0, digits)
		}
		return decimal{scale, pow10of128(min(digits, 38))}, digits, err
	}
	scale, err = t.number(0, 0, digits)
	return decimal{scale, pow10of128(min(digits, 38))}, digits, err
}

func (d *decimal) parse(t *token) (neg bool, v u128, f fault) {
	var in token
	if t.kind != kNum {
		if t, f = t.number(&in); f != ok {
			return false, v, f
		}
	}
	if v, f = t.scaled(d.scale); f != ok {
		return false, v, f
	}
	if !v.less(d.limit) {
		return false, v, fRange
	}
	return t.neg, v, ok
}

type decCol[T int32 | int64] struct {
	vec[T]
	decimal
}

func (c *decCol[T]) appendToken(t *token, _ *scanner) fault {
	neg, v, f := c.parse(t)
	if f != ok {
		return f
	}
	if neg {
		v.lo = -v.lo
	}
	c.v = append(c.v, T(v.lo))
	return ok
}

func (c *decCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	v := int64(c.v[i])
	if v < 0 {
		return appendKeyDecimal(dst, true, u128{0, -uint64(v)}, c.scale), true
	}
	return appendKeyDecimal(dst, false, u128{0, uint64(v)}, c.scale), true
}

type dec128Col struct {
	vec[i128]
	decimal
}

func (c *dec128Col) appendToken(t *token, _ *scanner) fault {
	neg, v, f := c.parse(t)
	if f != ok {
		return f
	}
	if neg {
		v = v.negate()
	}
	c.v = append(c.v, i128{v.lo, v.hi})
	return ok
}

func (a u128) negate() u128 {
	lo := -a.lo
	hi := ^a.hi
	if a.lo == 0 {
		hi++
	}
	return u128{hi, lo}
}

func (c *dec128Col) appendKey(dst []byte, i int) ([]byte, bool) {
	v := u128{c.v[i].hi, c.v[i].lo}
	neg := int64(v.hi) < 0
	if neg {
		v = v.negate()
	}
	return appendKeyDecimal(dst, neg, v, c.scale), true
}
