//go:build chaos

package e2e

import "time"

func logSchedules() []schedule {
	return []schedule{
		{name: "kafka-restart", account: true, span: 24 * time.Second, run: (*arena).brokerRestarts},
	}
}

// brokerRestarts: the broker stops in good order or is killed, and comes back.
func (a *arena) brokerRestarts() {
	for n := 0; a.feeding(a.between(3*time.Second, 5*time.Second)); n++ {
		if n%2 == 0 {
			a.broker.Stop()
			a.count("stops of the broker")
		} else {
			a.broker.Kill()
			a.count("kill -9 of the broker")
		}
		time.Sleep(a.between(500*time.Millisecond, 2*time.Second))
		a.broker.Start()
	}
}
