package decode

import (
	"fmt"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// Date32 and DateTime64 reach from 1900-01-01 to 2299-12-31.
const (
	date32Min = -25567
	date32Max = 120529
)

// dateCol takes YYYY-MM-DD and nothing else: the day of an instant depends on
// a zone, and a Date has none.
type dateCol[T uint16 | int32] struct {
	vec[T]
	min, max int32
}

func (c *dateCol[T]) appendToken(t *token, _ *scanner) fault {
	if t.kind != kStr {
		return notString(t)
	}
	day, good := parseDay(t.str)
	if !good {
		return fBadValue
	}
	if day < c.min || day > c.max {
		return fRange
	}
	c.v = append(c.v, T(day))
	return ok
}

func (c *dateCol[T]) unixMilli(i int) int64 { return int64(c.v[i]) * 86_400_000 }

func (c *dateCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	return appendKeyDay(dst, int32(c.v[i])), true
}

// timeCol is DateTime (uint32 seconds) or DateTime64 (int64 ticks).
type timeCol[T uint32 | int64] struct {
	vec[T]
	digits int    // of the fraction
	tick   uint32 // nanoseconds of a tick
	second int64  // ticks of a second
	// min and max are the instants, in seconds, that the type holds.
	min, max int64
	maxNano  uint32 // in the second max
	zone     zone
}

func newTime(t *typeName, server *time.Location) (column, error) {
	typ, zoneArg, digits := proto.ColumnType(t.text), 0, 0
	var err error
	if t.name == "DateTime64" {
		zoneArg, digits = 1, 3
		if len(t.args) > 0 {
			if digits, err = t.number(0, 0, 9); err != nil {
				return nil, err
			}
		}
	}
	loc := server
	if len(t.args) > zoneArg {
		if a := t.args[zoneArg]; !a.quoted || len(t.args) > zoneArg+1 {
			return nil, fmt.Errorf("type %q: argument %d must be a zone", t.text, zoneArg+1)
		} else if loc, err = time.LoadLocation(a.text); err != nil {
			return nil, fmt.Errorf("type %q: %w", t.text, err)
		}
	}
	if t.name == "DateTime" {
		c := &timeCol[uint32]{vec: vec[uint32]{typ: typ}, max: 1<<32 - 1}
		c.init(0, loc)
		return c, nil
	}
	c := &timeCol[int64]{vec: vec[int64]{typ: typ}}
	c.init(digits, loc)
	// The bounds hold on the column's clock and on UTC's.
	first, last := time.Date(1900, 1, 1, 0, 0, 0, 0, loc).Unix(), time.Date(2299, 12, 31, 23, 59, 59, 0, loc).Unix()
	c.min = max(first, date32Min*86400)
	c.max = min(last, (date32Max+1)*86400-1)
	if digits == 9 { // int64 ends earlier
		c.max, c.maxNano = 9223372036, 854775807
	}
	return c, nil
}

func (c *timeCol[T]) init(digits int, loc *time.Location) {
	c.digits = digits
	c.tick = uint32(pow10[9-digits])
	c.second = int64(pow10[digits])
	c.maxNano = 999_999_999
	c.zone.loc = loc
}

func (c *timeCol[T]) appendToken(t *token, _ *scanner) fault {
	switch t.kind {
	case kNum:
		return c.appendEpoch(t)
	case kStr:
		if len(t.str) <= 4 || t.str[4] != '-' {
			var in token
			switch n, f := t.number(&in); f {
			case ok:
				return c.appendEpoch(n)
			case fExponent:
				return f
			}
		}
		v, f := parseCivil(t.str)
		if f != ok {
			return f
		}
		sec := v.sec - int64(v.offset)
		if !v.zoned {
			if sec, f = c.zone.instant(v.sec); f != ok {
				return f
			}
		}
		return c.append(sec, v.nano)
	}
	return notString(t)
}

// appendEpoch appends a number of seconds, milli-, micro- or nanoseconds since
// 1970. The unit follows from the magnitude: windows of three digits, which
// begin at 1973-03-03 and reach beyond the columns' range in each unit. What is
// in no window is ambiguous.
func (c *timeCol[T]) appendEpoch(t *token) fault {
	if t.neg {
		return fUnit
	}
	var scale int // of the unit, to nanoseconds
	switch n := t.intDigits(); {
	case n < 9:
		return fUnit
	case n < 12:
		scale = 9
	case n < 15:
		scale = 6
	case n < 18:
		scale = 3
	case n < 21:
		scale = 0
	default:
		return fUnit
	}
	ns, f := t.scaled(scale)
	if f != ok {
		return f
	}
	if ns.hi != 0 {
		return fRange
	}
	return c.append(int64(ns.lo/1e9), uint32(ns.lo%1e9))
}

func (c *timeCol[T]) append(sec int64, nano uint32) fault {
	if sec < c.min || sec > c.max || sec == c.max && nano > c.maxNano {
		return fRange
	}
	if c.digits == 9 {
		c.v = append(c.v, T(sec*1e9+int64(nano)))
		return ok
	}
	ticks := nano / c.tick
	if ticks*c.tick != nano {
		return fInexact
	}
	c.v = append(c.v, T(sec*c.second+int64(ticks)))
	return ok
}

func (c *timeCol[T]) appendMilli(ms int64) fault {
	sec, rest := floorDiv(ms, 1000)
	nano := uint32(rest) * 1e6
	return c.append(sec, nano-nano%c.tick)
}

func floorDiv(a, b int64) (q, r int64) {
	q, r = a/b, a%b
	if r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}

// instant returns row i as seconds and nanoseconds.
func (c *timeCol[T]) instant(i int) (int64, uint32) {
	sec, ticks := floorDiv(int64(c.v[i]), c.second)
	return sec, uint32(ticks) * c.tick
}

func (c *timeCol[T]) unixMilli(i int) int64 {
	sec, nano := c.instant(i)
	return sec*1000 + int64(nano/1e6)
}

func (c *timeCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	sec, nano := c.instant(i)
	return appendKeyInstant(dst, sec, nano), true
}
