package decode

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func (a u256) big() *big.Int {
	n := new(big.Int)
	for i := 3; i >= 0; i-- {
		n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(a[i]))
	}
	return n
}

// randomWide spells a number with more digits than randomNumber does.
func randomWide(rnd *rand.Rand) string {
	s := strings.TrimPrefix(randomNumber(rnd), "-")
	if rnd.IntN(2) == 0 {
		head := ""
		for range rnd.IntN(60) {
			head += string(byte('0' + rnd.IntN(10)))
		}
		s = "1" + head + s
	}
	if rnd.IntN(2) == 0 {
		s = "-" + s
	}
	return s
}

func scanned(t *testing.T, text string) *token {
	t.Helper()
	var tok token
	s := scanner{data: []byte(text)}
	if p, f := s.num(0, &tok); f != ok || p != len(text) {
		t.Fatalf("%s: not read", text)
	}
	return &tok
}

// TestWideNumbersAgainstRationals compares scaled256 and BFloat16 with exact
// arithmetic of the standard library.
func TestWideNumbersAgainstRationals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	limit := new(big.Int).Lsh(big.NewInt(1), 256)
	taken := 0
	for range 40_000 {
		text := randomWide(rnd)
		tok := scanned(t, text)
		want, _ := new(big.Rat).SetString(text)
		scale := rnd.IntN(77)
		exact := new(big.Rat).Mul(want, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		v, f := tok.scaled256(scale)
		mag := new(big.Int).Abs(exact.Num())
		switch {
		case !exact.IsInt():
			if f == ok {
				t.Fatalf("%s at scale %d: taken", text, scale)
			}
		case mag.Cmp(limit) >= 0:
			if f != fRange {
				t.Fatalf("%s at scale %d: %d, want out of range", text, scale, f)
			}
		default:
			taken++
			if f != ok || v.big().Cmp(mag) != 0 {
				t.Fatalf("%s at scale %d: %s (%d), want %s", text, scale, v.big(), f, mag)
			}
		}
		checkBFloat(t, text, tok, want)
	}
	if taken < 5000 {
		t.Errorf("%d numbers were compared", taken)
	}
}

// Numbers at and next to the point half way between two BFloat16 are where
// rounding twice goes wrong.
func TestHalfwayNumbersAreRoundedTwice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		low := uint32(rnd.IntN(0x7f7f))
		half := new(big.Rat).SetFloat64(float64(math.Float32frombits(low << 16)))
		half.Add(half, new(big.Rat).SetFloat64(float64(math.Float32frombits((low+1)<<16)))).Quo(half, big.NewRat(2, 1))
		digits := half.FloatString(160)
		for _, text := range []string{digits, digits + "1", strings.TrimRight(strings.TrimRight(digits, "0"), ".") + "e0"} {
			checkNext(t, text)
		}
		below := new(big.Rat).Sub(half, new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(165), nil)))
		checkNext(t, below.FloatString(170))
	}
}

func checkNext(t *testing.T, text string) {
	t.Helper()
	want, good := new(big.Rat).SetString(text)
	if !good {
		t.Fatal(text)
	}
	if want.Sign() == 0 {
		return
	}
	checkBFloat(t, text, scanned(t, text), want)
}

// checkBFloat looks for the nearest of all by exact distances.
func checkBFloat(t *testing.T, text string, tok *token, want *big.Rat) {
	t.Helper()
	got, f := tok.bfloat()
	abs := new(big.Rat).Abs(want)
	if f != ok {
		half := new(big.Rat).SetFloat64(math.Ldexp(1, -134)) // of the smallest
		most := new(big.Rat).SetFloat64(float64(math.Float32frombits(0x7f7f<<16)) + math.Ldexp(1, 119))
		if f != fRange || abs.Cmp(half) > 0 && abs.Cmp(most) < 0 || want.Sign() == 0 {
			t.Fatalf("%s: %d", text, f)
		}
		return
	}
	if (got&0x8000 != 0) != tok.neg {
		t.Fatalf("%s: %#x has another sign", text, got)
	}
	at := func(bits uint32) *big.Rat {
		return new(big.Rat).SetFloat64(float64(math.Float32frombits(bits << 16)))
	}
	low := uint32(got & 0x7fff)
	distance := func(r *big.Rat) *big.Rat { return r.Abs(r.Sub(r, abs)) }
	own := distance(at(low))
	for _, other := range []uint32{low - 1, low + 1} {
		if other > 0x7f7f {
			continue
		}
		switch c := distance(at(other)).Cmp(own); {
		case c < 0, c == 0 && low&1 == 1:
			t.Fatalf("%s: %#x, and %#x is nearer or even", text, low, other)
		}
	}
}

func TestWideKeysAreThoseOfNarrowColumns(t *testing.T) {
	for _, c := range []struct {
		value string
		types []string
	}{
		{"0", []string{"UInt8", "Int128", "UInt128", "Int256", "UInt256", "LowCardinality(Int64)", "IntervalDay"}},
		{"-1", []string{"Int8", "Int128", "Int256", "LowCardinality(Nullable(Int256))"}},
		{"18446744073709551615", []string{"UInt64", "Int128", "UInt256"}},
		{"-9223372036854775808", []string{"Int64", "Int128", "Int256"}},
		{"1.5", []string{"Decimal(9, 2)", "Decimal(38, 10)", "Decimal(76, 38)", "Decimal(76, 75)"}},
		{"-1.5", []string{"Decimal(9, 2)", "Decimal(39, 1)"}},
		{"0.5", []string{"Float64", "Float32", "BFloat16", "LowCardinality(Float32)"}},
		{`"2026-01-01"`, []string{"Date", "Date32", "LowCardinality(Date)", "LowCardinality(Nullable(Date32))"}},
		{`"-01:02:03"`, []string{"Time", "Time64(0)", "Time64(9)", "LowCardinality(Time)"}},
		{"true", []string{"Bool", "LowCardinality(Bool)"}},
		{`"1.2.3.4"`, []string{"IPv4", "IPv6", "LowCardinality(IPv4)"}},
		{"5", []string{"UInt8", "SimpleAggregateFunction(max, UInt8)", "SimpleAggregateFunction(anyLast, LowCardinality(UInt8))"}},
	} {
		want := ""
		for _, typ := range c.types {
			h := &recordingHasher{}
			d := mustPlan(t, Options{Columns: []Column{{Name: "k", Type: typ}}, Key: []string{"k"}, Hasher: h})
			mustAppend(t, d.NewBlock(), `{"k":`+c.value+`}`)
			if want == "" {
				want = string(h.key)
			}
			if string(h.key) != want {
				t.Errorf("%s of %s: %x, want %x", c.value, typ, h.key, want)
			}
		}
	}
}
