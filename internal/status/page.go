package status

import (
	_ "embed"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// view is what the page and /status.json show.
type view struct {
	Group      string          `json:"group"`
	Version    string          `json:"version"`
	Alive      bool            `json:"alive"`
	Ready      bool            `json:"ready"`
	Reasons    []string        `json:"reasons,omitempty"`
	Partitions []partitionView `json:"partitions"`
	Lag        int64           `json:"lag"`
	OldestWait string          `json:"oldest_wait,omitempty"`
	Totals     []total         `json:"totals"`
	Stores     []storeView     `json:"servers"`
}

type partitionView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	State     string `json:"state"`
	For       string `json:"for"`
	Reason    string `json:"reason,omitempty"`
	Cure      string `json:"cure,omitempty"`
	Committed string `json:"committed,omitempty"` // text: not known yet is no number
	End       string `json:"end,omitempty"`
	Lag       string `json:"lag,omitempty"`
	Held      int    `json:"held_batches"`
	Buffered  int    `json:"buffered_records"`
}

type total struct {
	Class   string `json:"class"`
	Records int    `json:"records"`
}

type storeView struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	For    string `json:"for"`
	Detail string `json:"detail,omitempty"`
}

func (s *Status) view() view {
	now := s.o.Now()
	v := view{Group: s.o.Group, Version: s.o.Version, Partitions: []partitionView{}, Stores: []storeView{}}
	v.Alive, v.Reasons = s.alive()
	var why []string
	if v.Ready, why = s.ready(); v.Alive {
		v.Reasons = why
	}
	if n := len(v.Reasons) - shownReasons; n > 0 {
		v.Reasons = append(slices.Clone(v.Reasons[:shownReasons]), "and "+strconv.Itoa(n)+" more")
	}
	var oldest time.Duration
	for _, r := range s.sorted() {
		p := partitionView{
			Topic: r.topic, Partition: r.place.partition, State: r.state, Reason: r.reason, Cure: r.cure, For: age(now, r.since),
			Committed: offset(r.committed), End: offset(r.end), Held: r.held, Buffered: r.buffered,
		}
		if lag, ok := r.lag(); ok {
			p.Lag = strconv.FormatInt(lag, 10)
			v.Lag += lag
		}
		if r.state != Running {
			oldest = max(oldest, now.Sub(r.since))
			v.OldestWait = oldest.Round(time.Second).String()
		}
		v.Partitions = append(v.Partitions, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, class := range classes {
		v.Totals = append(v.Totals, total{class, s.totals[class]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.stores)) {
		st, state := s.stores[name], "down"
		if st.up {
			state = "up"
		}
		v.Stores = append(v.Stores, storeView{name, state, age(now, st.since), st.detail})
	}
	return v
}

func age(now, since time.Time) string { return now.Sub(since).Round(time.Second).String() }

func offset(o int64) string {
	if o < 0 {
		return ""
	}
	return strconv.FormatInt(o, 10)
}
