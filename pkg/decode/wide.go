package decode

import "math/bits"

// u256 is an unsigned 256-bit magnitude, or a two's complement integer of that
// size, least significant word first, as the wire has it.
type u256 [4]uint64

func (a u128) wide() u256 { return u256{a.lo, a.hi} }

func (a u256) less(b u256) bool {
	for i := 3; i > 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return a[0] < b[0]
}

// mulAdd returns a*m + d, and whether that fits.
func (a u256) mulAdd(m, d uint64) (u256, bool) {
	carry := d
	for i, w := range a {
		hi, lo := bits.Mul64(w, m)
		var c uint64
		a[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c // hi is at most 2^64-2
	}
	return a, carry == 0
}

func (a u256) div10() (u256, uint64) {
	var r uint64
	for i := 3; i >= 0; i-- {
		a[i], r = bits.Div64(r, a[i], 10)
	}
	return a, r
}

func (a u256) negate() u256 {
	carry := uint64(1)
	for i := range a {
		a[i], carry = bits.Add64(^a[i], 0, carry)
	}
	return a
}

// bytes is how many bytes the magnitude has without the zeros at its end.
func (a u256) bytes() int {
	for i := 3; i >= 0; i-- {
		if a[i] != 0 {
			return 8*i + (bits.Len64(a[i])+7)/8
		}
	}
	return 0
}

// pow10of256 returns 10^n for n up to 76.
func pow10of256(n int) u256 {
	p, _ := u256{1}.shift10(n)
	return p
}

func (a u256) shift10(e int) (u256, fault) {
	for e > 0 {
		n := min(e, 19)
		var fits bool
		if a, fits = a.mulAdd(pow10[n], 0); !fits {
			return u256{}, fRange
		}
		e -= n
	}
	return a, ok
}

// scaled256 is scaled for columns of more than 128 bits. What fits 64 bits takes
// the same way as there; of the rest it looks at each digit.
func (t *token) scaled256(scale int) (u256, fault) {
	e := int(t.exp) + scale
	if !t.big {
		if t.mant == 0 {
			return u256{}, ok
		}
		if e <= 0 {
			v, f := t.scaled(scale)
			return v.wide(), f
		}
		if e > 77 {
			return u256{}, fRange
		}
		return u256{t.mant}.shift10(e)
	}
	digits := t.countDigits()
	keep := digits
	if e < 0 {
		keep = max(0, digits+e)
	}
	var v u256
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
				return u256{}, fInexact
			}
		} else {
			var fits bool
			if v, fits = v.mulAdd(10, uint64(d)); !fits {
				return u256{}, fRange
			}
		}
		i++
	}
	if e <= 0 || v == (u256{}) {
		return v, ok
	}
	if e > 77 {
		return u256{}, fRange
	}
	return v.shift10(e)
}

// countDigits returns how many digits a number's text has up to an exponent.
func (t *token) countDigits() int {
	digits := 0
	for _, c := range t.raw {
		if c|0x20 == 'e' {
			break
		}
		if c-'0' <= 9 {
			digits++
		}
	}
	return digits
}
