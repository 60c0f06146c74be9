package wiring

import (
	"fmt"
	"strings"
	"testing"
)

// The gauge that tells in time that a repeat would soon double must be fed, by the narrowest window: here the view's target, of 100 blocks.
func TestTheHeadroomOfTheWindowsIsShown(t *testing.T) {
	r := newRig(t, 1)
	r.tables()
	for i := range 30 {
		r.sql(fmt.Sprintf("INSERT INTO orders VALUES (%d, 1)", 1000+i))
	}
	l := r.start(nil)
	want := fmt.Sprintf(`sink_dedup_window_headroom_ratio{table="%s.orders"} 0.7`, r.database)
	l.await("telling the headroom", func() (bool, string) {
		_, text := l.get("/metrics")
		return strings.Contains(text, want+"\n"), want + " is missing"
	})
}
