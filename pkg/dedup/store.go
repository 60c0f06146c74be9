package dedup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/pkg/batcher"
)

const (
	defaultHorizon = 24 * time.Hour
	defaultSlack   = time.Hour
	eventSlot      = time.Hour
	clusterGroups  = 16
	maxOffset      = 1<<40 - 1
)

// Store is the client of one domain. It is safe for concurrent use by the
// workers of different partitions; one partition has one worker.
type Store struct {
	back   backend
	domain Domain
	hooks  Hooks
	events Events
	clock  func() time.Time
	head   atomic.Pointer[head]
	groups int
	gbits  uint

	mu      sync.Mutex
	state   [MaxGroups]groupState
	sources map[batcher.Source]*source
	driving [MaxGroups]atomic.Bool
	pool    sync.Pool
}

// groupState is what this client knows of a hash-tag group.
type groupState struct {
	epoch uint64
	known uint64           // the largest epoch ever met
	asked time.Time        // when the last call left that was answered
	names map[uint32]named // interned owners under that epoch
	d     int64            // the largest insert deadline seen in its marker
	// The marker as it was when it last named another table than ours: what
	// Adopt compares with. Taken before the caller reads ClickHouse.
	swapEpoch uint64
	swapTable [16]byte
	told      string // the reason of the quarantine that was told last
}

type named struct {
	group  string
	source batcher.Source
}

// source is what this client knows of a partition that it works on.
type source struct {
	text string // its interned name
	// start is the first offset claimed under the group's present epoch: below
	// it the group's claims may have been lost, so no run reaches lower.
	start [MaxGroups]int64
	epoch [MaxGroups]uint64
}

func newStore(back backend, h *head, d Domain, hooks Hooks, events Events) (*Store, error) {
	if hooks.Quiet == nil {
		return nil, errors.New("dedup: Hooks.Quiet is needed: without it a quarantine could never end safely")
	}
	s := &Store{back: back, domain: d, hooks: hooks, events: events, clock: time.Now, groups: h.groups,
		gbits: uint(bits.TrailingZeros(uint(h.groups))), sources: map[batcher.Source]*source{}}
	s.head.Store(h)
	s.pool.New = func() any { return &scratch{} }
	return s, nil
}

// newHead puts together what a domain announces.
func newHead(cfg Config, d Domain) (*head, error) {
	if d.Database == "" || d.Table == "" || d.Group == "" {
		return nil, errors.New("dedup: a domain needs database, table and consumer group")
	}
	h := &head{table: d.TableUUID, d: d.InsertDeadline.Milliseconds(), h: cfg.Horizon.Milliseconds(), slack: cfg.Slack.Milliseconds(), arrival: !d.EventTime, groups: 1}
	if h.h <= 0 {
		h.h = defaultHorizon.Milliseconds()
	}
	if h.slack <= 0 {
		h.slack = defaultSlack.Milliseconds()
	}
	h.name = domainName(d)
	kind := "event"
	h.slot = eventSlot.Milliseconds()
	if h.arrival {
		kind, h.slot = "arrival", h.h
	}
	if strings.Contains(d.Route, ";") {
		return nil, fmt.Errorf("dedup: the definition %q has a semicolon", d.Route)
	}
	h.route = fmt.Sprintf("hash=%d slots=%s %s", HashVersion, kind, d.Route)
	return h, nil
}

// domainName is unambiguous: a dot inside a name is escaped.
func domainName(d Domain) string {
	escape := func(s string) string { return strings.ReplaceAll(batcher.Escape(s), ".", "%2E") }
	return escape(d.Database) + "." + escape(d.Table)
}

// domainID stands in every key of the domain.
func domainID(name string) string {
	return fmt.Sprintf("%016x", xxhash.Sum64String(name))[:10]
}

// Close drops the connections.
func (s *Store) Close() error { return s.back.close() }

// Groups tells how many hash-tag groups the domain has.
func (s *Store) Groups() int { return s.groups }

func (s *Store) slotOf(it *Item, h *head) int64 {
	if h.arrival {
		return 0 // the store's clock decides
	}
	slot := it.EventMs / h.slot
	if it.EventMs%h.slot < 0 {
		slot--
	}
	return slot
}

// of returns what is known of a source. Its worker alone uses the answer.
func (s *Store) of(src batcher.Source) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.sources[src]
	if o == nil {
		o = &source{text: ownerText(s.domain.Group, src)}
		s.sources[src] = o
	}
	return o
}

// ownerText is the interned name: consumer group and source.
func ownerText(group string, src batcher.Source) string {
	return batcher.Escape(group) + "|" + src.String()
}

func parseOwner(text string) (named, error) {
	group, rest, ok := strings.Cut(text, "|")
	if !ok {
		return named{}, fmt.Errorf("interned owner %q: want group|source", text)
	}
	name, err := batcher.Unescape(group)
	if err != nil {
		return named{}, fmt.Errorf("interned owner %q: %w", text, err)
	}
	src, err := batcher.ParseSource(rest)
	if err != nil {
		return named{}, fmt.Errorf("interned owner %q: %w", text, err)
	}
	return named{name, src}, nil
}

// run sends the calls until each of them is answered, raising epochs and
// opening quarantines on the way. Its error is the most telling of theirs.
func (s *Store) run(ctx context.Context, calls []*call) error {
	if len(calls) > 0 && calls[0].op != opAcked && s.silence(calls) {
		// Asked before anything is written that would have to be void.
		_, list := s.everyGroup(opAcked, "")
		if err := s.run(ctx, list); err != nil {
			return err
		}
	}
	var failed error
	left := calls
	for try := 0; len(left) > 0; try++ {
		if try > 0 {
			left = append([]*call(nil), left...)
		}
		at := s.ready(left)
		s.back.exec(ctx, left)
		if err := s.catchUp(ctx, left, at); err != nil {
			return worse(failed, err)
		}
		var again []*call
		for _, c := range left {
			retry, err := s.settle(ctx, c)
			switch {
			case err != nil:
				failed = worse(failed, err)
			case retry && try < 8:
				again = append(again, c)
			case retry:
				failed = worse(failed, &Waiting{Reason: fmt.Sprintf("the marker of group %d keeps changing", c.group)})
			}
		}
		left = again
	}
	return failed
}

// settle looks at one answer: whether to send the call again, or the error.
func (s *Store) settle(ctx context.Context, c *call) (again bool, err error) {
	if c.err != nil {
		return false, explain(c.err)
	}
	older := s.older(c)
	switch c.status {
	case stOK, stEpoch, stQuarantine:
		// Whatever it says: not of the store that has the present claims.
		if older {
			return true, s.raise(ctx, c, c.got, false, reasonOlder)
		}
	default: // raises as well, or says why it can't be used
	}
	switch c.status {
	case stOK:
		s.note(c)
		return false, nil
	case stMissing:
		return true, s.raise(ctx, c, 0, false, ReasonNew)
	case stMoved:
		return true, s.raise(ctx, c, c.got, false, "the server restarted or another one took over: writes may be lost")
	case stSwapped:
		s.mu.Lock()
		s.state[c.group].swapEpoch, s.state[c.group].swapTable = c.got, c.table
		s.mu.Unlock()
		return false, &Swapped{Marker: c.table, Ours: c.head.table}
	case stEpoch:
		return false, &EpochChanged{Groups: []int{c.group}, Old: c.epoch, New: c.got}
	case stQuarantine:
		s.note(c)
		return s.drive(ctx, c)
	case stVersion:
		return false, unknownFormat(c.said, c.head.name)
	default:
		return false, s.shapeError(c)
	}
}

func (s *Store) shapeError(c *call) error {
	part := strings.SplitN(c.said, ";", 3)
	if len(part) != 3 {
		return &Unfit{Problem: "the marker of the domain can't be read: " + c.said}
	}
	switch {
	case part[0] != c.head.name:
		return sameID(part[0], c.head.name)
	case part[1] != c.head.route:
		return &RouteChanged{Table: c.head.name, Marker: part[1], Ours: c.head.route, Keys: keyPattern(c.head.name)}
	default:
		return &Unfit{Problem: fmt.Sprintf("the domain has %s hash-tag groups, this sink works with %d", part[2], c.head.groups), Cure: "restart the sink: it reads the number at start; it must not differ between markers"}
	}
}

// note keeps what an answer says of its group.
func (s *Store) note(c *call) {
	s.mu.Lock()
	g := &s.state[c.group]
	if g.epoch != c.got {
		g.epoch, g.names = c.got, nil
	}
	g.d = max(g.d, c.d)
	s.mu.Unlock()
}

// rank orders errors by what the caller must know first.
func rank(err error) int {
	var unfit *Unfit
	var route *RouteChanged
	var swapped *Swapped
	var epoch *EpochChanged
	var hold *Quarantine
	var wait *Waiting
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wait):
		return 2
	case errors.As(err, &hold):
		return 3
	case errors.As(err, &epoch):
		return 4
	case errors.As(err, &swapped):
		return 5
	case errors.As(err, &route), errors.As(err, &unfit):
		return 6
	}
	return 1
}

func worse(a, b error) error {
	var ea, eb *EpochChanged
	if errors.As(a, &ea) && errors.As(b, &eb) {
		ea.Groups = append(ea.Groups, eb.Groups...)
		return a
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func uuidText(u [16]byte) string { return hex.EncodeToString(u[:]) }

func uuid(text string) (u [16]byte) {
	_, _ = hex.Decode(u[:], []byte(text[:min(len(text), 32)]))
	return u
}
