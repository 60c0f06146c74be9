package decode

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// randomNumber spells a number in one of JSON's many ways.
func randomNumber(rnd *rand.Rand) string {
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			if rnd.IntN(3) == 0 {
				b.WriteByte('0')
			} else {
				b.WriteByte(byte('0' + rnd.IntN(10)))
			}
		}
		return b.String()
	}
	s := "0"
	if rnd.IntN(4) > 0 {
		s = string(byte('1'+rnd.IntN(9))) + digits(rnd.IntN(24))
	}
	if rnd.IntN(2) == 0 {
		s += "." + digits(1+rnd.IntN(24))
	}
	if rnd.IntN(2) == 0 {
		s += fmt.Sprintf("e%d", rnd.IntN(60)-30)
	}
	if rnd.IntN(3) == 0 {
		s = "-" + s
	}
	return s
}

// TestNumbersAgainstRationals compares scaled, canonical and float with exact
// arithmetic of the standard library.
func TestNumbersAgainstRationals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	limit := new(big.Int).Lsh(big.NewInt(1), 128)
	for range 40_000 {
		text := randomNumber(rnd)
		s := scanner{data: []byte(text)}
		var tok token
		if p, f := s.num(0, &tok); f != ok || p != len(text) {
			t.Fatalf("%s: not read", text)
		}
		want, _ := new(big.Rat).SetString(text)

		canonical := appendCanonical(nil, &tok)
		back, good := new(big.Rat).SetString(string(canonical))
		if !good || back.Cmp(want) != 0 {
			t.Fatalf("%s: canonical %s", text, canonical)
		}
		var again token
		s = scanner{data: canonical}
		if _, f := s.num(0, &again); f != ok || string(appendCanonical(nil, &again)) != string(canonical) {
			t.Fatalf("%s: canonical %s is not canonical", text, canonical)
		}

		scale := rnd.IntN(39)
		exact := new(big.Rat).Mul(want, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		v, f := tok.scaled(scale)
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
			got := new(big.Int).SetUint64(v.hi)
			got.Lsh(got, 64).Add(got, new(big.Int).SetUint64(v.lo))
			if f != ok || got.Cmp(mag) != 0 {
				t.Fatalf("%s at scale %d: %s (%d), want %s", text, scale, got, f, mag)
			}
		}

		if fl, f := tok.float(64); f == ok {
			if near, _ := want.Float64(); fl != near {
				t.Fatalf("%s: %v, want %v", text, fl, near)
			}
		}
		if fl, f := tok.float(32); f == ok {
			if near, _ := want.Float32(); float32(fl) != near {
				t.Fatalf("%s: %v, want %v", text, fl, near)
			}
		}
	}
}

func TestDaysAgainstTheStandardLibrary(t *testing.T) {
	day := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	for ; day.Year() < 2300; day = day.AddDate(0, 0, 1) {
		got, good := parseDay([]byte(day.Format(time.DateOnly)))
		if !good || int64(got)*86400 != day.Unix() {
			t.Fatalf("%s: %d", day, got)
		}
	}
}

// TestClockChangesAgainstTheStandardLibrary looks at times around all changes
// of the clocks of some zones with odd ones. A clock time must give the one
// instant that shows it, and be ambiguous if none or two do.
func TestClockChangesAgainstTheStandardLibrary(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Apia", "America/Caracas", "Africa/Monrovia", "Europe/Dublin", "Antarctica/Troll", "Africa/Casablanca"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		z := zone{loc: loc}
		rnd := rand.New(rand.NewPCG(3, 4))
		offset := func(u int64) int64 {
			_, off := time.Unix(u, 0).In(loc).Zone()
			return int64(off)
		}
		check := func(clock int64) {
			t.Helper()
			// The offsets in force around it, and which of them fit.
			instants := map[int64]bool{}
			for probe := clock - 16*3600; probe <= clock+16*3600; probe += 1800 {
				if u := clock - offset(probe); offset(u) == offset(probe) {
					instants[u] = true
				}
			}
			got, f := z.instant(clock)
			if len(instants) == 1 && (f != ok || !instants[got]) || len(instants) != 1 && f != fAmbiguous {
				t.Fatalf("%s %s: %d (%d), want one of %v", name, time.Unix(clock, 0).UTC().Format(time.DateTime), got, f, instants)
			}
		}
		last := time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		for u := time.Date(1900, 1, 2, 0, 0, 0, 0, time.UTC).Unix(); u < last; u += 86400 {
			if offset(u) != offset(u-86400) {
				for range 4 {
					check(u + rnd.Int64N(4*86400) - 3*86400)
				}
			}
		}
		// The last days of leap years far ahead, where ZoneBounds is wrong.
		for year := 2036; year < 2300; year += 8 {
			check(time.Date(year, 12, 31, 12, 0, 0, 0, time.UTC).Unix())
		}
	}
}

// A plan is shared by the workers of all partitions.
func TestPlanIsSharedByGoroutines(t *testing.T) {
	o := settlementOptions()
	o.UnknownFields = IgnoreUnknown
	d := mustPlan(t, o)
	var wg sync.WaitGroup
	rows := make([]string, 4)
	for g := range rows {
		wg.Go(func() {
			b := d.NewBlock()
			for i := range 200 {
				rec := strings.Replace(string(settlement(i)), "{", fmt.Sprintf(`{"x%d":%d,`, g, i), 1)
				if _, rej := d.Append(b, value(rec)); rej != nil {
					t.Error(rej)
				}
			}
			rows[g] = b.String()
		})
	}
	wg.Wait()
	for g := range rows {
		if rows[g] != rows[0] {
			t.Errorf("worker %d has other rows", g)
		}
	}
}
