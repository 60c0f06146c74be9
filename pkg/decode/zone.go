package decode

import (
	"time"
	_ "time/tzdata" // a column's zone must not depend on what the host has installed
)

// zone turns times of its clocks into instants. It remembers some days on
// which the clocks were not changed, so a lookup is a comparison.
//
// Only the offsets of time.Location are used: Time.ZoneBounds is off by a day
// at the end of leap years after 2037 (Go 1.26), where it may name an end that
// is not behind the instant asked for.
type zone struct {
	loc  *time.Location
	days [64]zoneDay
}

type zoneDay struct {
	day    int64
	offset int64
	known  bool
}

// maxOffset is as far as any zone's clocks ever were from UTC.
const maxOffset = 16 * 3600

// instant returns the seconds since 1970 in UTC of a clock time of the zone,
// counted as if the clock were UTC. A time that the clocks skip or show twice
// is ambiguous.
func (z *zone) instant(clock int64) (int64, fault) {
	if z.loc == time.UTC {
		return clock, ok
	}
	day, _ := floorDiv(clock, 86400)
	if e := &z.days[uint64(day)%uint64(len(z.days))]; e.known && e.day == day {
		return clock - e.offset, ok
	}
	return z.lookup(clock, day)
}

// lookup asks for the offsets at all hours that can be that day on some clock.
// No zone ever kept an offset for less than an hour.
func (z *zone) lookup(clock, day int64) (int64, fault) {
	var offsets [8]int64
	n := 0
	for u := day*86400 - maxOffset; u <= (day+1)*86400+maxOffset; u += 3600 {
		if o := z.offset(u); n == 0 || o != offsets[n-1] && n < len(offsets) {
			offsets[n] = o
			n++
		}
	}
	if n == 1 {
		z.days[uint64(day)%uint64(len(z.days))] = zoneDay{day, offsets[0], true}
		return clock - offsets[0], ok
	}
	found := 0
	var at int64
	for _, o := range offsets[:n] {
		if u := clock - o; z.offset(u) == o && (found == 0 || u != at) {
			at = u
			found++
		}
	}
	if found != 1 {
		return 0, fAmbiguous
	}
	return at, ok
}

func (z *zone) offset(u int64) int64 {
	_, o := time.Unix(u, 0).In(z.loc).Zone()
	return int64(o)
}
