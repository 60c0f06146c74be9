package wiring

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// positions remembers how far each partition of ours is, so that the end of a run can tell.
type positions struct {
	mu   sync.Mutex
	last map[string]position
}

type position struct {
	topic           string
	partition       int32
	committed, next int64
}

func (p *positions) set(at position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]position{}
	}
	p.last[fmt.Sprintf("%s/%d", at.topic, at.partition)] = at
}

func (p *positions) gone(topic string, partition int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, fmt.Sprintf("%s/%d", topic, partition))
}

// shownPositions bounds the partitions in a log line.
const shownPositions = 16

// String lists what is committed, and what was read past it.
func (p *positions) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]position, 0, len(p.last))
	for _, at := range p.last {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b position) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	var list []string
	open := 0
	for i, at := range all {
		text := fmt.Sprintf("%s/%d at %d", at.topic, at.partition, max(at.committed, 0))
		if at.next > at.committed {
			open++
			text += fmt.Sprintf(" (%s past it begun: the next start settles them)", Plural(int(at.next-max(at.committed, 0)), "offset"))
		}
		if i < shownPositions {
			list = append(list, text)
		}
	}
	switch {
	case len(all) == 0:
		return "no partition was held"
	case len(all) > shownPositions:
		list = append(list, fmt.Sprintf("and %d more; %d of all have offsets begun past it", len(all)-shownPositions, open))
	}
	return strings.Join(list, ", ")
}

// tellStopped says how a run ended: why, what is committed, and the account of it.
func (s *session) tellStopped(ctx context.Context, r *Report) {
	s.stops.tell()
	reason := "drained"
	switch cause := context.Cause(ctx); {
	case cause != nil:
		reason = cause.Error()
	case len(r.Halted) > 0:
		reason = "what could be drained is; " + Plural(len(r.Halted), "partition") + " stopped"
	}
	s.log.Info("stopped", "reason", reason, "committed", s.at.String(), "account", Account(r.Counts))
}

// Account is the account of a run in one line: what was consumed is the sum of its classes.
func Account(c pipeline.Counts) string {
	return fmt.Sprintf("consumed %d = inserted %d + duplicates %d + conflicts %d + dead letters %d + filtered %d",
		c.RecordsConsumed, c.Inserted, c.Duplicates(), c.Conflicts, c.DeadLetters, c.Filtered)
}
