package decode

import (
	"math"
	"time"
	_ "time/tzdata" // a column's zone must not depend on what the host has installed
)

// zone turns times of its clocks into instants. It remembers the last stretch
// of times in which the clocks were not changed, so a lookup is a comparison.
type zone struct {
	loc      *time.Location
	from, to int64 // clock times in [from, to) have this offset and no other
	offset   int64
}

// instant returns the seconds since 1970 in UTC of a clock time of the zone,
// counted as if the clock were UTC. A time that the clocks skip or show twice
// is ambiguous.
func (z *zone) instant(clock int64) (int64, fault) {
	if clock >= z.from && clock < z.to {
		return clock - z.offset, ok
	}
	return z.lookup(clock)
}

// maxOffset is more than any zone was ever ahead of or behind UTC.
const maxOffset = 26 * 3600

func (z *zone) lookup(clock int64) (int64, fault) {
	found := 0
	var at int64
	for t := clock - maxOffset; ; {
		start, end, offset := z.stretch(t)
		if u := clock - offset; u >= start && u < end {
			found++
			at = u
			z.remember(start, end, offset)
		}
		if end > clock+maxOffset {
			break
		}
		t = end
	}
	if found != 1 {
		z.from, z.to = 0, 0
		return 0, fAmbiguous
	}
	return at, ok
}

// stretch returns the bounds and the offset of the stretch of unchanged clocks
// around the instant t.
func (z *zone) stretch(t int64) (start, end, offset int64) {
	tm := time.Unix(t, 0).In(z.loc)
	_, off := tm.Zone()
	start, end = math.MinInt64/2, math.MaxInt64/2
	a, b := tm.ZoneBounds()
	if !a.IsZero() {
		start = a.Unix()
	}
	if !b.IsZero() {
		end = b.Unix()
	}
	return start, end, int64(off)
}

// remember notes the part of a stretch whose clock times no neighbour shows.
func (z *zone) remember(start, end, offset int64) {
	z.from, z.to, z.offset = start+offset, end+offset, offset
	if start > math.MinInt64/2 {
		_, _, before := z.stretch(start - 1)
		z.from = start + max(offset, before)
	}
	if end < math.MaxInt64/2 {
		_, _, after := z.stretch(end)
		z.to = end + min(offset, after)
	}
}
