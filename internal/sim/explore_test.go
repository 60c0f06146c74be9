package sim

import (
	"runtime"
	"testing"
)

func TestProbe(t *testing.T) {
	var m runtime.MemStats
	for _, s := range AllWorlds()[4:] {
		e := Explore(s, 1, 15000, false)
		runtime.ReadMemStats(&m)
		t.Log("\n"+Table([]Exploration{e}), m.HeapAlloc>>20, "MB")
		for _, b := range e.Broken {
			t.Log(b.Violation)
		}
	}
}
