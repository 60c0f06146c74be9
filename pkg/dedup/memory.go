package dedup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Memory is a dedup store in plain Go, with the exact semantics of the scripts
// and a clock that is given. Several sinks may Open it; the client that each
// gets is the one that works over Redis. Simulations drive it: nothing in it
// starts a goroutine, waits or reads another clock.
//
// Entries end at the earliest time that the format allows; Redis may keep them
// longer, a bucket at a time.
type Memory struct {
	// Fate, when set, decides what becomes of a call to a group. It is asked
	// once a call, before it is done.
	Fate func(call string, group int) Fate

	mu     sync.Mutex
	clock  func() time.Time
	groups int
	state  *MemoryState
	server int // its identity changes with every restart
	lives  int // and is never given twice
}

// Fate is what becomes of a call on its way.
type Fate uint8

const (
	// Answered means: done, and its answer arrives.
	Answered Fate = iota
	// RequestLost means: not done; the caller can't know.
	RequestLost
	// ReplyLost means: done; the caller can't know.
	ReplyLost
)

// MemoryState is a copy of everything a Memory holds.
type MemoryState struct {
	domains map[string][]*memGroup
	server  int // its identity, where the whole store was exchanged
}

// ErrLost is what a call answers whose request or reply was lost.
var ErrLost = errors.New("connection lost: it is not known whether the call was done")

// NewMemory makes an empty store with a number of hash-tag groups, a power of two.
func NewMemory(clock func() time.Time, groups int) *Memory {
	return &Memory{clock: clock, groups: groups, state: &MemoryState{domains: map[string][]*memGroup{}}}
}

// Open is dedup.Open over this store. Of the configuration it uses Horizon and
// Slack. cutoff is how long a master that was cut off may still answer.
func (m *Memory) Open(ctx context.Context, cfg Config, cutoff time.Duration, d Domain, hooks Hooks, events Events) (*Store, error) {
	if m.groups < 1 || m.groups > MaxGroups || m.groups&(m.groups-1) != 0 {
		return nil, fmt.Errorf("dedup: %d groups: want a power of two up to %d", m.groups, MaxGroups)
	}
	h, err := newHead(cfg, d)
	if err != nil {
		return nil, err
	}
	h.groups, h.cutoff = m.groups, cutoff.Milliseconds()
	s, err := newStore(&memoryBackend{m}, h, d, hooks, events)
	if err != nil {
		return nil, err
	}
	s.clock = m.clock
	if err := s.greet(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Restart gives the server another identity, as a restart or a failover does.
func (m *Memory) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reborn()
}

func (m *Memory) reborn() {
	m.lives++
	m.server = m.lives
}

// Exchange puts another store in this one's place, as an address does that leads
// elsewhere: nil is an empty one. It answers the store that was there, and that
// one, given back, is what it was: its server has not restarted.
func (m *Memory) Exchange(other *MemoryState) (was *MemoryState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was = m.state
	was.server = m.server
	if other == nil {
		m.reborn()
		other = &MemoryState{domains: map[string][]*memGroup{}, server: m.server}
	}
	m.state, m.server = other, other.server
	return was
}

// Flush loses everything.
func (m *Memory) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = &MemoryState{domains: map[string][]*memGroup{}}
}

// Snapshot copies what the store holds.
func (m *Memory) Snapshot() *MemoryState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.copy()
}

// Restore goes back to a snapshot under another identity: what was written
// since is lost, as by a failover to a replica that lagged.
func (m *Memory) Restore(s *MemoryState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s.copy()
	m.reborn()
}

// RestoreGroup does the same to one hash-tag group, as one master of a cluster
// would. Its identity is not that of the others from then on.
func (m *Memory) RestoreGroup(s *MemoryState, group int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	other := s.copy()
	for name, groups := range m.state.domains {
		lives := groups[group].lives
		groups[group] = newMemGroup()
		if old, ok := other.domains[name]; ok {
			groups[group] = old[group]
		}
		groups[group].lives = lives + 1
	}
}

// Sweep forgets entries that have expired: the store's memory, not its
// semantics, needs it.
func (m *Memory) Sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock().UnixMilli()
	for _, groups := range m.state.domains {
		for _, g := range groups {
			maps.DeleteFunc(g.claims, func(_ place, c claim) bool { return c.expires <= now })
		}
	}
}

func (s *MemoryState) copy() *MemoryState {
	c := &MemoryState{domains: map[string][]*memGroup{}}
	for name, groups := range s.domains {
		list := make([]*memGroup, len(groups))
		for i, g := range groups {
			list[i] = &memGroup{acked: maps.Clone(g.acked), ids: maps.Clone(g.ids), names: maps.Clone(g.names), claims: maps.Clone(g.claims), lives: g.lives}
			if g.marker != nil {
				marker := *g.marker
				list[i].marker = &marker
			}
		}
		c.domains[name] = list
	}
	return c
}

type memoryBackend struct{ m *Memory }

func (b *memoryBackend) close() error { return nil }

func (b *memoryBackend) settled(context.Context, int) (bool, string, error) { return true, "", nil }

func (b *memoryBackend) exec(ctx context.Context, calls []*call) {
	for _, c := range calls {
		if c.err = ctx.Err(); c.err != nil {
			continue
		}
		fate := Answered
		if b.m.Fate != nil {
			fate = b.m.Fate(opText[c.op], c.group)
		}
		if fate != RequestLost {
			b.m.apply(c)
		}
		if fate != Answered {
			c.answerless()
			c.err = ErrLost
		}
	}
}

func (m *Memory) apply(c *call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	groups := m.state.domains[c.head.name]
	if groups == nil {
		groups = make([]*memGroup, m.groups)
		for i := range groups {
			groups[i] = newMemGroup()
		}
		m.state.domains[c.head.name] = groups
	}
	g, now := groups[c.group], m.clock()
	g.apply(c, now.UnixMilli(), uint64(now.UnixMicro()), fmt.Sprintf("%d/%d", m.server, g.lives))
}
