package decode

import "github.com/ClickHouse/ch-go/proto"

// hoursCol is Time (int32 seconds) or Time64 (int64 ticks): a time of day, or a
// span of up to 999 hours in either direction. It takes text alone. A number
// would have to be guessed at: some mean seconds of the day by it, some
// milliseconds, some HHMMSS.
type hoursCol[T int32 | int64] struct {
	vec[T]
	tick   uint32 // nanoseconds of a tick
	second int64  // ticks of a second
}

// maxHours is the last hour that the types have a spelling for.
const maxHours = 999

func newHours(t *typeName) (column, error) {
	typ := proto.ColumnType(t.text)
	if t.name == "Time" {
		return &hoursCol[int32]{vec[int32]{typ: typ}, 1e9, 1}, nil
	}
	digits := 3
	if len(t.args) > 0 {
		var err error
		if digits, err = t.number(0, 0, 9); err != nil {
			return nil, err
		}
	}
	return &hoursCol[int64]{vec[int64]{typ: typ}, uint32(pow10[9-digits]), int64(pow10[digits])}, nil
}

func (c *hoursCol[T]) appendToken(t *token, _ *scanner) fault {
	if t.kind != kStr {
		return notString(t)
	}
	neg, sec, nano, f := parseHours(t.str)
	if f != ok {
		return f
	}
	ticks := nano / c.tick
	if ticks*c.tick != nano {
		return fInexact
	}
	v := sec*c.second + int64(ticks)
	if neg {
		v = -v
	}
	c.v = append(c.v, T(v))
	return ok
}

// parseHours reads [-]h:mm:ss and a fraction, of any number of digits for the
// hours. Minute and second 60 are no times here.
func parseHours(s []byte) (neg bool, sec int64, nano uint32, _ fault) {
	if len(s) > 0 && s[0] == '-' {
		neg = true
		s = s[1:]
	}
	i, h := 0, int64(0)
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		h = min(h*10+int64(s[i]-'0'), maxHours+1)
	}
	if i == 0 || len(s) < i+6 || s[i] != ':' || s[i+3] != ':' {
		return neg, 0, 0, fBadValue
	}
	m, second := two(s, i+1), two(s, i+4)
	if m > 59 || second > 59 {
		return neg, 0, 0, fBadValue
	}
	s = s[i+6:]
	if len(s) > 0 {
		var f fault
		if nano, s, f = parseFraction(s); f != ok {
			return neg, 0, 0, f
		}
		if len(s) > 0 {
			return neg, 0, 0, fBadValue
		}
	}
	if h > maxHours {
		return neg, 0, 0, fRange
	}
	return neg, h*3600 + int64(m*60+second), nano, ok
}

func (c *hoursCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	sec, ticks := floorDiv(int64(c.v[i]), c.second)
	return appendKeyTime(dst, sec, uint32(ticks)*c.tick), true
}
