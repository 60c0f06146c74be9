//go:build chaos

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// samples is what was looked at while the faults were under way.
type samples struct {
	taken, above, away int // away: the engine could not be asked
	told               int
	nextTable          time.Time
	stop               func()
}

// watch looks at the table and its views every 100 ms: no view above the sum of what had been produced by then, none ahead of its table, no key twice.
func (a *arena) watch() {
	a.seen.stop = a.background(func() time.Duration {
		a.look()
		return 100 * time.Millisecond
	})
}

// watched ends it.
func (a *arena) watched() {
	a.seen.stop()
	if a.seen.taken == 0 {
		a.t.Error("no sample was taken during the faults")
	}
}

func (a *arena) look() {
	wrong, err := a.sampleOnce()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.seen.away++
		return
	}
	a.seen.taken++
	if wrong == "" {
		return
	}
	a.seen.above++
	if a.seen.told++; a.seen.told <= 5 {
		a.t.Errorf("during the faults: %s", wrong)
	}
}

func (a *arena) sampleOnce() (wrong string, err error) {
	views := make([]found, len(a.views))
	for i, v := range a.views {
		if views[i], err = a.inView(v); err != nil {
			return "", err
		}
	}
	// What the views show had been produced when they were asked, so it is in the truth of a later moment as well.
	truth := a.feed.truth()
	for i, v := range views {
		if v.rows > truth.Keys || v.amount > truth.Amount || v.qty > truth.Qty {
			return fmt.Sprintf("view target %s holds %+v, produced were %+v", a.views[i], v, truth), nil
		}
	}
	if time.Now().Before(a.seen.nextTable) {
		return "", nil
	}
	if a.schedule.large {
		a.seen.nextTable = time.Now().Add(time.Minute)
	}
	table, err := a.inTable()
	if err != nil {
		return "", err
	}
	if table.rows != table.keys {
		return fmt.Sprintf("%d rows for %d keys in %s%s", table.rows, table.keys, a.table, a.doubles()), nil
	}
	if later := a.feed.truth(); table.keys > later.Keys || table.amount > later.Amount {
		return fmt.Sprintf("table %s holds %+v, produced were %+v", a.table, table, later), nil
	}
	for i, v := range views {
		if v.rows > table.rows || v.amount > table.amount {
			return fmt.Sprintf("view target %s holds %+v, its table a moment later %+v", a.views[i], v, table), nil
		}
	}
	return "", nil
}

// tallyOf counts things by their name.
type tallyOf map[string]int

func (t tallyOf) String() string {
	var names []string
	for n := range t {
		names = append(names, n)
	}
	slices.Sort(names)
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%d %s", t[n], n))
	}
	return strings.Join(out, ", ")
}
