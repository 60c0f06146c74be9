package decode

import (
	"bytes"
	"math"
	"strconv"
)

// bfloatCol is BFloat16: the upper half of a float32. A number is rounded to the
// nearest, to even between two, as for the other floats; ClickHouse's own
// reading of text cuts the lower half off.
type bfloatCol struct{ vec[uint16] }

func (c *bfloatCol) appendToken(t *token, _ *scanner) fault {
	var in token
	t, f := t.number(&in)
	if f != ok {
		return f
	}
	v, f := t.bfloat()
	if f != ok {
		return f
	}
	c.v = append(c.v, v)
	return ok
}

// halfBits are the bits of a float32 that a BFloat16 does not have.
const halfBits = 16

func (t *token) bfloat() (uint16, fault) {
	f, fl := t.float(64)
	if fl != ok {
		return 0, fl
	}
	a := math.Abs(f)
	if a > math.MaxFloat32*1.01 {
		return 0, fRange
	}
	// The BFloat16 below and the point half way to the next one are exact doubles.
	low := uint32(0)
	if s := float32(a); float64(s) > a {
		low = math.Float32bits(math.Nextafter32(s, 0)) >> halfBits
	} else {
		low = math.Float32bits(s) >> halfBits
	}
	if low >= 0x7f80 {
		low = 0x7f7f // the largest that is finite
	}
	below := float64(math.Float32frombits(low << halfBits))
	step := float64(math.Float32frombits(1 << halfBits)) // of the smallest ones
	if e := low >> 7; e > 1 {
		step = math.Ldexp(step, int(e)-1)
	}
	half := below + step/2
	up := a > half
	if a == half { // which the double is, but perhaps not the number
		switch t.comparedWith(f) {
		case 0:
			up = low&1 == 1
		case 1:
			up = true
		}
	}
	if up {
		low++
	}
	if low >= 0x7f80 || low == 0 && (t.mant != 0 || t.big) {
		return 0, fRange
	}
	if t.neg {
		low |= 0x8000
	}
	return uint16(low), ok
}

// comparedWith tells whether the number's magnitude is below (-1), equal to (0)
// or above (1) that of its nearest double, to the last digit.
func (t *token) comparedWith(f float64) int {
	// A double has at most 767 digits, all of which this writes.
	exact := strconv.AppendFloat(nil, math.Abs(f), 'e', 766, 64)
	e := bytes.IndexByte(exact, 'e')
	exp, _ := strconv.Atoi(string(exact[e+1:]))
	want := bytes.TrimRight(append(exact[:1:1], exact[2:e]...), "0")
	have := make([]byte, 0, len(t.raw))
	for _, c := range t.raw {
		if c|0x20 == 'e' {
			break
		}
		if c-'0' <= 9 && (c != '0' || len(have) > 0) {
			have = append(have, c)
		}
	}
	if e := len(have) + int(t.exp) - 1; e != exp {
		if e < exp {
			return -1
		}
		return 1
	}
	return bytes.Compare(bytes.TrimRight(have, "0"), want)
}

func (c *bfloatCol) appendKey(dst []byte, i int) ([]byte, bool) {
	return appendKeyFloat(dst, float64(math.Float32frombits(uint32(c.v[i])<<halfBits))), true
}
