package writer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
	"time"
)

// Config says how to reach the replicas of one shard.
type Config struct {
	Addresses []string // host:port of the replicas of one shard, native protocol
	// Balanced: the one address is a balancer in front of several replicas, so that two connections may reach two servers.
	Balanced bool
	Database string // the default database; "": default
	Username string
	Password string
	TLS      *tls.Config // nil: plain
	// Compression is lz4, zstd or none; "": lz4.
	Compression string
	Settings    map[string]string // for every insert; those that the protocol pins are refused
	// InsertDeadline is how late an insert may still start on the server; InsertTimeout is how long its answer is waited for.
	InsertDeadline, InsertTimeout time.Duration
	MaxConns                      int // per replica; 0: 8

	silence time.Duration // how long a server may say nothing about a question; 0: 30 s
}

// Events are told what an operator wants to see. Each may be nil; they must not block.
type Events struct {
	ReplicaDown func(replica string, err error) // once when a replica stops answering
	ReplicaUp   func(replica string)            // once when it answers again
	// StaleConnection: an idle connection had been cut; nothing of the statement had been sent on it, and it was sent on a fresh one.
	StaleConnection func(replica string)
}

// Server is the ClickHouse shard that a sink writes into: one or more replicas. It is safe for concurrent use.
type Server struct {
	cfg      Config
	events   Events
	replicas []*replicaState
	rotor    rotor
}

// Open checks the configuration. It doesn't dial.
func Open(cfg Config, events Events) (*Server, error) {
	if cfg.Database == "" {
		cfg.Database = "default"
	}
	if cfg.Username == "" {
		cfg.Username = "default"
	}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 8
	}
	if cfg.silence == 0 {
		cfg.silence = 30 * time.Second
	}
	if cfg.InsertDeadline == 0 {
		cfg.InsertDeadline = 5 * time.Second
	}
	if cfg.InsertTimeout == 0 {
		cfg.InsertTimeout = 60 * time.Second
	}
	var problems []error
	if len(cfg.Addresses) == 0 {
		problems = append(problems, errors.New("clickhouse.addresses: at least one host:port is needed"))
	}
	seen := map[string]bool{}
	for _, a := range cfg.Addresses {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			problems = append(problems, fmt.Errorf("clickhouse.addresses: %q is no host:port, e.g. localhost:9000", a))
		}
		if seen[a] {
			problems = append(problems, fmt.Errorf("clickhouse.addresses: %s is named twice", a))
		}
		seen[a] = true
	}
	if cfg.Balanced && len(cfg.Addresses) > 1 {
		problems = append(problems, errors.New("clickhouse.balanced: one address is wanted, that of the balancer"))
	}
	switch cfg.Compression {
	case "", "lz4", "zstd", "none":
	default:
		problems = append(problems, fmt.Errorf("clickhouse.compression: %q is none of lz4, zstd, none", cfg.Compression))
	}
	if cfg.InsertDeadline < 0 || cfg.InsertTimeout < 0 || cfg.MaxConns < 0 {
		problems = append(problems, errors.New("clickhouse: insert_deadline, insert_timeout and the number of connections can't be negative"))
	}
	for _, name := range sortedNames(cfg.Settings) {
		if pinnedSetting(name) {
			problems = append(problems, fmt.Errorf("clickhouse.settings.%s: the sink sets it itself, exactly-once hangs on it; remove it", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, events: events}
	for _, a := range cfg.Addresses {
		s.replicas = append(s.replicas, newReplica(a, cfg.MaxConns))
	}
	return s, nil
}

// Close closes idle connections. Exchanges under way end by their own contexts.
func (s *Server) Close() {
	for _, r := range s.replicas {
		r.closeIdle()
	}
}

// Replicas are the addresses as configured.
func (s *Server) Replicas() []string { return s.cfg.Addresses }

func (s *Server) byAddress(addr string) (*replicaState, error) {
	for _, r := range s.replicas {
		if r.addr == addr {
			return r, nil
		}
	}
	return nil, fmt.Errorf("clickhouse %s: not among clickhouse.addresses (%s)", addr, strings.Join(s.cfg.Addresses, ", "))
}

// do runs a statement that may be repeated on the given replica.
func (s *Server) do(ctx context.Context, r *replicaState, q *request) error {
	_, err := s.run(ctx, r, q)
	return err
}

// doAny runs a read on any replica that answers.
func (s *Server) doAny(ctx context.Context, q func() *request) error {
	return s.onAny(ctx, func(r *replicaState) error { return s.do(ctx, r, q()) })
}

// onAny calls f for one replica after another until one could be talked to.
func (s *Server) onAny(ctx context.Context, f func(*replicaState) error) error {
	var failures []error
	for _, r := range s.order() {
		err := f(r)
		if err == nil || !unreachable(err) || ctx.Err() != nil {
			return err
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// unreachable tells a replica that can't be talked to from one that answered with an error.
func unreachable(err error) bool {
	var ex *Exception
	var in *inputError
	return !errors.As(err, &ex) && !errors.As(err, &in)
}

// run runs one statement on one replica. A connection that turns out to have been cut while it was idle is replaced.
func (s *Server) run(ctx context.Context, r *replicaState, q *request) (stage, error) {
	for {
		c, err := s.connect(ctx, r)
		if err != nil {
			return stage{}, err
		}
		reused := c.reused
		st, err := s.exchange(ctx, r, c, q)
		s.release(r, c)
		if err == nil {
			return st, nil
		}
		if reused && !st.answered && !st.sent && ctx.Err() == nil && unreachable(err) {
			// Nothing came back and no data had left: the statement can't have done anything but a statement of its own.
			// Every idle connection has probably met the same fate.
			r.closeIdle()
			if s.events.StaleConnection != nil {
				s.events.StaleConnection(r.addr)
			}
			continue
		}
		return st, err
	}
}

// exchange runs one statement on a connection, with settings made for the server that it leads to.
func (s *Server) exchange(ctx context.Context, r *replicaState, c *conn, q *request) (st stage, err error) {
	if q.settingsFor != nil {
		f, err := s.factsOn(ctx, r, c)
		if err != nil {
			return st, err
		}
		q.settings = q.settingsFor(f)
	}
	st, err = c.exchange(ctx, q)
	var ex *Exception
	if err != nil && !errors.As(err, &ex) {
		err = fmt.Errorf("clickhouse %s: %w", r.addr, err)
	}
	return st, err
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
