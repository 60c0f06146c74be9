package status

import (
	"fmt"
	"strings"
	"time"
)

// shownReasons bounds the reasons in an answer: with hundreds of partitions and one dead server they are all the same.
const shownReasons = 5

// alive tells whether a restart would not help. Waiting for a server, for another partition or for somebody's decision is being alive: a restart
// would only start the wait anew. Being at work and not getting on is not.
func (s *Status) alive() (ok bool, reasons []string) {
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	if failure != "" {
		reasons = append(reasons, failure)
	}
	now := s.o.Now()
	for _, r := range s.sorted() {
		idle := r.held == 0 && r.buffered == 0
		if r.state == Running && !idle && now.Sub(r.progress) > s.o.StallAfter {
			reasons = append(reasons, fmt.Sprintf("%s/%d holds records and has not got on for %s", r.topic, r.place.partition, now.Sub(r.progress).Round(time.Second)))
		}
	}
	return len(reasons) == 0, reasons
}

// ready tells whether every partition that is ours gets on.
func (s *Status) ready() (ok bool, reasons []string) {
	if ok, why := s.alive(); !ok {
		return false, why
	}
	s.mu.Lock()
	joined := s.joined
	s.mu.Unlock()
	if !joined {
		return false, []string{"no partition is assigned yet"}
	}
	for _, r := range s.sorted() {
		if r.state == Running || r.state == Gated {
			continue
		}
		why := fmt.Sprintf("%s/%d is %s", r.topic, r.place.partition, r.state)
		if r.reason != "" {
			why += ": " + r.reason
		}
		reasons = append(reasons, why)
	}
	return len(reasons) == 0, reasons
}

func sentence(good string, reasons []string) string {
	if len(reasons) == 0 {
		return good + "\n"
	}
	more := ""
	if n := len(reasons) - shownReasons; n > 0 {
		reasons, more = reasons[:shownReasons], fmt.Sprintf("\nand %d more", n)
	}
	return strings.Join(reasons, "\n") + more + "\n"
}
