package decode

// civil is a date and time as text spells it.
type civil struct {
	// sec counts the seconds from 1970-01-01 00:00:00 on the clock of the text.
	sec  int64
	nano uint32
	// offset is what that clock is ahead of UTC, where zoned.
	offset int32
	zoned  bool
}

// parseCivil reads YYYY-MM-DD, T or a space, hh:mm:ss, a fraction of any
// length, and Z, +hh:mm, +hhmm, +hh or nothing. A second 60 and an hour 24 are
// no times here.
func parseCivil(s []byte) (civil, fault) {
	var c civil
	if len(s) < 19 {
		return c, fBadValue
	}
	day, good := parseDay(s[:10])
	if !good || s[10]|0x20 != 't' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return c, fBadValue
	}
	h, m, sec := two(s, 11), two(s, 14), two(s, 17)
	if h > 23 || m > 59 || sec > 59 {
		return c, fBadValue
	}
	c.sec = int64(day)*86400 + int64(h)*3600 + int64(m)*60 + int64(sec)
	s = s[19:]
	if len(s) > 0 && s[0] == '.' {
		var f fault
		if c.nano, s, f = parseFraction(s); f != ok {
			return c, f
		}
	}
	if len(s) == 0 {
		return c, ok
	}
	c.zoned = true
	return c, c.zone(s)
}

// parseFraction reads a point and digits into nanoseconds, and returns what
// follows. Digits behind the ninth must be zero.
func parseFraction(s []byte) (nano uint32, rest []byte, _ fault) {
	if s[0] != '.' {
		return 0, s, fBadValue
	}
	i := 1
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		if i <= 9 {
			nano = nano*10 + uint32(s[i]-'0')
		} else if s[i] != '0' {
			return 0, s, fInexact
		}
	}
	if i == 1 {
		return 0, s, fBadValue
	}
	for n := i; n <= 9; n++ {
		nano *= 10
	}
	return nano, s[i:], ok
}

func (c *civil) zone(s []byte) fault {
	if len(s) == 1 && s[0]|0x20 == 'z' {
		return ok
	}
	if s[0] != '+' && s[0] != '-' {
		return fBadValue
	}
	var h, m uint32
	switch {
	case len(s) == 3:
		h = two(s, 1)
	case len(s) == 5:
		h, m = two(s, 1), two(s, 3)
	case len(s) == 6 && s[3] == ':':
		h, m = two(s, 1), two(s, 4)
	default:
		return fBadValue
	}
	if h > 23 || m > 59 {
		return fBadValue
	}
	c.offset = int32(h*3600 + m*60)
	if s[0] == '-' {
		c.offset = -c.offset
	}
	return ok
}

// two reads two digits; anything else gives a number above 99.
func two(s []byte, i int) uint32 {
	a, b := uint32(s[i])-'0', uint32(s[i+1])-'0'
	if a > 9 || b > 9 {
		return 1 << 20
	}
	return a*10 + b
}

// parseDay reads YYYY-MM-DD into days since 1970-01-01.
func parseDay(s []byte) (int32, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, m, d := two(s, 0)*100+two(s, 2), two(s, 5), two(s, 8)
	if y > 9999 || m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return 0, false
	}
	return daysFromCivil(int32(y), int32(m), int32(d)), true
}

func daysIn(y, m uint32) uint32 {
	switch m {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysFromCivil counts days in the proleptic Gregorian calendar, in years that
// begin in March so that the leap day is the last.
func daysFromCivil(y, m, d int32) int32 {
	if m <= 2 {
		y--
		m += 12
	}
	return 365*y + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 1 - 719468
}
