//go:build chaos

package e2e

import "time"

func storeSchedules() []schedule {
	return []schedule{
		{name: "redis-flushall", account: true, run: (*arena).flushes},
	}
}

// flushes: everything that Redis knew is gone, again and again.
func (a *arena) flushes() {
	for a.feeding(a.between(2*time.Second, 4*time.Second)) {
		a.store.do(a.store.node(), "FLUSHALL")
		a.count("FLUSHALL")
	}
}
