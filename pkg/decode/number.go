package decode

import (
	"math/bits"
	"strconv"
)

var pow10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// u128 is an unsigned 128-bit magnitude.
type u128 struct{ hi, lo uint64 }

func (a u128) less(b u128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// mulAdd returns a*m + d, and whether that fits.
func (a u128) mulAdd(m, d uint64) (u128, bool) {
	h1, lo := bits.Mul64(a.lo, m)
	h2, hi := bits.Mul64(a.hi, m)
	lo, c := bits.Add64(lo, d, 0)
	hi, c2 := bits.Add64(hi, h1, c)
	return u128{hi, lo}, h2 == 0 && c2 == 0
}

// pow10of128 returns 10^n for n up to 38.
func pow10of128(n int) u128 {
	p := u128{0, 1}
	for ; n > 19; n -= 19 {
		p, _ = p.mulAdd(pow10[19], 0)
	}
	p, _ = p.mulAdd(pow10[n], 0)
	return p
}

// scaled returns the magnitude of a number times 10^scale, exactly.
func (t *token) scaled(scale int) (u128, fault) {
	if t.big {
		return t.scaledDigits(scale)
	}
	e := int(t.exp) + scale
	switch {
	case e == 0 || t.mant == 0:
		return u128{0, t.mant}, ok
	case e > 38:
		return u128{}, fRange
	case e > 0:
		return u128{0, t.mant}.shift10(e)
	case e < -19:
		return u128{}, fInexact // a mantissa of 64 bits has no 20 zeros
	}
	p := pow10[-e]
	if t.mant%p != 0 {
		return u128{}, fInexact
	}
	return u128{0, t.mant / p}, ok
}

func (a u128) shift10(e int) (u128, fault) {
	for e > 0 {
		n := min(e, 19)
		var fits bool
		if a, fits = a.mulAdd(pow10[n], 0); !fits {
			return u128{}, fRange
		}
		e -= n
	}
	return a, ok
}

// scaledDigits is scaled for numbers whose digits do not fit 64 bits.
func (t *token) scaledDigits(scale int) (u128, fault) {
	digits := t.countDigits()
	e := int(t.exp) + scale
	keep := digits
	if e < 0 {
		keep = max(0, digits+e)
	}
	var v u128
	i := 0
	for _, c := range t.raw {
		d := c - '0'
		if i == digits {
			break
		}
		if d > 9 {
			continue
		}
		if i >= keep {
			if d != 0 {
				return u128{}, fInexact
			}
		} else {
			var fits bool
			if v, fits = v.mulAdd(10, uint64(d)); !fits {
				return u128{}, fRange
			}
		}
		i++
	}
	if e <= 0 || v == (u128{}) {
		return v, ok
	}
	if e > 38 {
		return u128{}, fRange
	}
	return v.shift10(e)
}

// intDigits returns how many digits a positive number has before its point. 0
// has none, however it is spelt: 0e12 is not the size of 1e12.
func (t *token) intDigits() int {
	if t.mant == 0 && !t.big {
		return 0
	}
	if !t.big {
		n := 0
		for n < len(pow10) && t.mant >= pow10[n] {
			n++
		}
		return n + int(t.exp)
	}
	n, leading := 0, true
	for _, c := range t.raw {
		if c|0x20 == 'e' {
			break
		}
		if c-'0' > 9 || leading && c == '0' {
			continue
		}
		leading = false
		n++
	}
	return n + int(t.exp)
}

// exact floats: powers of ten that a float holds exactly, so that one
// multiplication or division rounds once, which is correct rounding.
var floatPow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// float returns the nearest float of that size.
func (t *token) float(size int) (float64, fault) {
	if size == 64 && !t.big && t.mant < 1<<53 && t.exp >= -22 && t.exp <= 22 {
		f := float64(t.mant)
		if t.exp < 0 {
			f /= floatPow10[-t.exp]
		} else {
			f *= floatPow10[t.exp]
		}
		if t.neg {
			f = -f
		}
		return f, ok
	}
	f, err := strconv.ParseFloat(view(t.raw), size)
	if err != nil || f == 0 && (t.mant != 0 || t.big) {
		return 0, fRange
	}
	return f, ok
}

// number gives t itself, or the number that a string spells in JSON's own
// grammar: "7" is 7, while " 7", "+7", "07" and "" are no numbers.
func (t *token) number(into *token) (*token, fault) {
	switch t.kind {
	case kNum:
		return t, ok
	case kStr:
		if len(t.str) == 0 || t.str[0] != '-' && t.str[0]-'0' > 9 {
			return nil, fBadValue
		}
		s := scanner{data: t.str}
		switch p, f := s.num(0, into); {
		case f == fExponent:
			return nil, f
		case f != ok || p != len(t.str):
			return nil, fBadValue
		}
		return into, ok
	case kNull:
		return nil, fNull
	}
	return nil, fWrongType
}
