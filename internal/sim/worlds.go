package sim

import (
	"fmt"
	"slices"
	"strings"
)

// What may go wrong, by what it befalls.
var (
	onTheWay  = []fault{faultLostReply, faultLateLanding, faultLateCommit, faultLateInsert, faultLostAck, faultNoLog}
	ofServers = []fault{faultServerCrash, faultBusy, faultFailover, faultFlush, faultStoreRestart, faultStoreDown}
	ofViews   = []fault{faultViewBroken}
	ofSinks   = []fault{faultCrash, faultPause, faultRebalance}
)

// FewWorlds are explored by every test run, in seconds.
func FewWorlds() []*Small {
	return []*Small{
		{Name: "crossed, no fault, any batch", Logs: []string{"ab", "ba"}, Sinks: 2, Cut: 2, Cuts: true},
		{Name: "crossed, with a view, no fault", Logs: []string{"ab", "ba"}, Sinks: 2, Views: 1, Cut: 1},
		{Name: "crossed, on the way", Logs: []string{"ab", "ba"}, Sinks: 2, Cut: 2, Faults: onTheWay, Most: 1},
		{Name: "twice in a log, a flush", Logs: []string{"aa", "ab"}, Sinks: 2, Cut: 2, Faults: []fault{faultFlush, faultLostAck, faultBusy}, Most: 1},
	}
}

// AllWorlds take minutes.
func AllWorlds() []*Small {
	list := FewWorlds()
	for _, views := range []int{0, 1} {
		with := ""
		servers := ofServers
		if views > 0 {
			with, servers = ", a view", slices.Concat(ofServers, ofViews)
		}
		list = append(list,
			&Small{Name: "servers" + with, Logs: []string{"ab", "ba"}, Sinks: 2, Views: views, Cut: 2, Faults: servers, Most: 1},
			&Small{Name: "one by one, on the way" + with, Logs: []string{"aa", "ba"}, Sinks: 2, Views: views, Cut: 1, Faults: onTheWay, Most: 1},
			&Small{Name: "sinks" + with, Logs: []string{"ab", "ba"}, Sinks: 2, Views: views, Cut: 2, Faults: ofSinks, Most: 1},
		)
	}
	return append(list,
		&Small{Name: "a window of one block", Logs: []string{"ab", "ca"}, Sinks: 2, Cut: 1, Window: 1, Faults: onTheWay, Most: 1},
		&Small{Name: "two on the way", Logs: []string{"ab", "ba"}, Sinks: 2, Cut: 2, Faults: []fault{faultLostReply, faultLateCommit, faultLateInsert, faultLostAck}, Most: 2},
		&Small{Name: "two, servers and answers", Logs: []string{"ab", "ba"}, Sinks: 2, Cut: 2, Faults: []fault{faultLostAck, faultServerCrash, faultFlush}, Most: 2},
		&Small{Name: "two, sinks and inserts", Logs: []string{"a", "a"}, Sinks: 2, Cut: 1, Faults: []fault{faultCrash, faultLateInsert, faultLostAck}, Most: 2},
	)
}

// WorldNamed finds one.
func WorldNamed(name string) (*Small, error) {
	var names []string
	for _, s := range AllWorlds() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("there is no world %q; there are: %s", name, strings.Join(names, "; "))
}
