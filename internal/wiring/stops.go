package wiring

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stops gathers partitions that stopped for the same cause. A ClickHouse that
// restarts under load stops most of those with an insert under way, each with a
// command of its own in the log: one line names the command for all of them.
type stops struct {
	log    *slog.Logger
	kick   chan struct{}
	mu     sync.Mutex
	causes map[cause]*stopped
}

// cause is a topic and a way on, without the partition.
type cause struct{ topic, cure string }

type stopped struct {
	partitions map[int32]bool
	told       int // how many of them the last line named
}

func newStops(log *slog.Logger) *stops {
	return &stops{log: log, kick: make(chan struct{}, 1), causes: map[cause]*stopped{}}
}

// partitionPlace stands for the partition in a cure.
const partitionPlace = " --partition \x00"

// set notes that a partition stopped, and what its way on is.
func (s *stops) set(topic string, partition int32, cure string) {
	one := fmt.Sprintf(" --partition %d ", partition)
	// An offset or a range is about one partition alone.
	if strings.Count(cure, one) != 1 || strings.Contains(cure, " --to ") || strings.Contains(cure, " --range ") {
		return
	}
	c := cause{topic, strings.Replace(cure, one, partitionPlace+" ", 1)}
	s.mu.Lock()
	at := s.causes[c]
	if at == nil {
		at = &stopped{partitions: map[int32]bool{}}
		s.causes[c] = at
	}
	at.partitions[partition] = true
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// gone forgets a partition: it goes on, or another member has it.
func (s *stops) gone(topic string, partition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, at := range s.causes {
		if c.topic == topic && at.partitions[partition] {
			delete(at.partitions, partition)
			at.told = min(at.told, len(at.partitions))
		}
	}
}

// tell names the command for each cause that stopped several partitions, once
// until more of them follow.
func (s *stops) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, at := range s.causes {
		if len(at.partitions) < 2 || at.told == len(at.partitions) {
			continue
		}
		at.told = len(at.partitions)
		var list []string
		for _, p := range slices.Sorted(maps.Keys(at.partitions)) {
			list = append(list, strconv.Itoa(int(p)))
		}
		all := strings.Join(list, ",")
		s.log.Error("several partitions stopped for the same cause: one command for all of them", "topic", c.topic, "partitions", all,
			"cure", strings.Replace(c.cure, partitionPlace, " --partition "+all, 1))
	}
}

// stopsQuiet is how long no further partition has to stop before those that did
// are named: they stop one after the other.
const stopsQuiet = 3 * time.Second

// watch tells when a while has passed without another stop.
func (s *stops) watch(ctx context.Context) {
	quiet := time.NewTimer(stopsQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-s.kick:
			quiet.Reset(stopsQuiet)
		case <-quiet.C:
			s.tell()
		case <-ctx.Done():
			return
		}
	}
}
