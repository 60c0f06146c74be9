package demo

import (
	"sort"
	"strconv"
	"strings"
	"time"
)

// Sends counts statements, and their rows, that came over rows which an earlier statement had brought already.
type Sends struct {
	Statements int   `json:"statements"`
	Rows       int64 `json:"rows"`
}

// sentAgain sorts the statements that overlap an earlier one of the same partition: when the latest of those is of the same life of the sink, its
// acknowledgement was lost; when it is of an earlier life, the restart brought it on. Lives begin at the given times.
func sentAgain(list []statement, lives []time.Time) (sameLife, laterLife Sends) {
	type sent struct {
		first, last int64
		life        int
	}
	before := map[string][]sent{}
	for _, st := range list {
		source, first, last, ok := rangeOf(st.id)
		if !ok {
			continue
		}
		life := sort.Search(len(lives), func(i int) bool { return lives[i].After(st.started) })
		again, same := false, false
		for _, b := range before[source] {
			if b.first <= last && first <= b.last {
				again, same = true, b.life == life
			}
		}
		before[source] = append(before[source], sent{first, last, life})
		switch {
		case again && same:
			sameLife.add(st.rows)
		case again:
			laterLife.add(st.rows)
		}
	}
	return sameLife, laterLife
}

func (s *Sends) add(rows int64) {
	s.Statements++
	s.Rows += rows
}

// rangeOf reads the partition and the offsets out of a query id: oncesink/table/group/cluster/topic/partition/first-last/digest/piece/attempt.
func rangeOf(id string) (source string, first, last int64, ok bool) {
	const parts, at = 10, 6
	p := strings.Split(id, "/")
	if len(p) != parts {
		return "", 0, 0, false
	}
	from, to, _ := strings.Cut(p[at], "-")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	return strings.Join(p[3:at], "/"), first, last, err1 == nil && err2 == nil
}
