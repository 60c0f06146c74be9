package sim

import (
	"fmt"
	"strings"
)

// What may go wrong, by what it befalls.
var (
	onTheWay  = []fault{faultLostReply, faultLateLanding, faultLateCommit, faultLateInsert, faultLostAck, faultNoLog}
	ofServers = []fault{faultServerCrash, faultBusy, faultFailover, faultFlush, faultStoreRestart, faultStoreDown}
)

// FewWorlds are explored by every test run, in seconds.
func FewWorlds() []*Small {
	return []*Small{
		{Name: "crossed, any batch", Logs: []string{"ab", "ba"}, Sinks: 2, Cut: 2, Cuts: true},
		{Name: "crossed, a view", Logs: []string{"ab", "ba"}, Sinks: 2, Views: 1, Cut: 1},
		{Name: "inserts", Logs: []string{"ab", "bc"}, Sinks: 2, Cut: 2, Faults: []fault{faultLateInsert, faultLostAck}, Most: 1},
		{Name: "a flush", Logs: []string{"aa", "a"}, Sinks: 2, Cut: 2, Faults: []fault{faultFlush, faultBusy}, Most: 1},
		{Name: "a restart", Logs: []string{"ab"}, Sinks: 1, Cut: 1, Faults: []fault{faultCrash}, Most: 1},
	}
}

// AllWorlds take minutes.
func AllWorlds() []*Small {
	list := append(FewWorlds(),
		&Small{Name: "a window of one block", Logs: []string{"ab", "ca"}, Sinks: 2, Cut: 1, Window: 1, Faults: onTheWay, Most: 1},
		&Small{Name: "two inserts", Logs: []string{"ab", "ba"}, Sinks: 2, Cut: 2, Faults: []fault{faultLateInsert, faultLostAck}, Most: 2},
		&Small{Name: "two, a server and an answer", Logs: []string{"a", "a"}, Sinks: 2, Cut: 1, Faults: []fault{faultLostAck, faultServerCrash}, Most: 2},
		&Small{Name: "two, a crash and an insert", Logs: []string{"aa"}, Sinks: 2, Cut: 1, Faults: []fault{faultCrash, faultLateInsert}, Most: 2},
		&Small{Name: "two, a restart and an insert", Logs: []string{"ab"}, Sinks: 1, Cut: 1, Window: 1, Faults: []fault{faultCrash, faultLateInsert, faultLateCommit, faultLostAck}, Most: 2},
		&Small{Name: "views that fail", Logs: []string{"ab", "ba"}, Sinks: 2, Views: 1, Cut: 2, Faults: []fault{faultViewBroken, faultLostAck}, Most: 2},
		&Small{Name: "a pause", Logs: []string{"a"}, Sinks: 2, Cut: 1, Faults: []fault{faultPause}, Most: 1},
	)
	for views, with := range []string{"", ", a view"} {
		list = append(list,
			&Small{Name: "servers" + with, Logs: []string{"ab", "bc"}, Sinks: 2, Views: views, Cut: 2, Faults: ofServers, Most: 1},
			&Small{Name: "on the way" + with, Logs: []string{"aa", "ba"}, Sinks: 2, Views: views, Cut: 1, Faults: onTheWay, Most: 1},
			&Small{Name: "a crash" + with, Logs: []string{"ab", "bc"}, Sinks: 2, Views: views, Cut: 2, Faults: []fault{faultCrash}, Most: 1},
			&Small{Name: "a rebalance" + with, Logs: []string{"ab", "ba"}, Sinks: 2, Views: views, Cut: 2, Faults: []fault{faultRebalance}, Most: 1},
		)
	}
	return list
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
