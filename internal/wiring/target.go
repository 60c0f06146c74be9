package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Usage is an error that the operator mends in the configuration: exit code 2.
type Usage struct{ Err error }

func (e *Usage) Error() string { return e.Err.Error() }
func (e *Usage) Unwrap() error { return e.Err }

// ExitCode is that of a wrong configuration.
func (e *Usage) ExitCode() int { return 2 }

// Server opens ClickHouse as configured. It does not dial yet.
func Server(cfg *config.Config, events writer.Events) (*writer.Server, error) {
	t, err := cfg.ClickHouseTLS()
	if err != nil {
		return nil, &Usage{err}
	}
	password, err := cfg.ClickHouse.Password.Reveal()
	if err != nil {
		return nil, &Usage{err}
	}
	return writer.Open(writer.Config{
		Addresses: cfg.ClickHouse.Addresses, Balanced: cfg.ClickHouse.Balanced, Database: cfg.ClickHouse.Database,
		Username: cfg.ClickHouse.Username, Password: password, TLS: t,
		Compression: cfg.ClickHouse.Compression, Settings: cfg.ClickHouse.Settings,
		InsertDeadline: cfg.ClickHouse.InsertDeadline, InsertTimeout: cfg.ClickHouse.InsertTimeout, MaxConns: 16,
	}, events)
}

// StoreConfig is the store as configured.
func StoreConfig(cfg *config.Config) (dedup.Config, error) {
	t, err := cfg.RedisTLS()
	if err != nil {
		return dedup.Config{}, &Usage{err}
	}
	password, err := cfg.Redis.Password.Reveal()
	if err != nil {
		return dedup.Config{}, &Usage{err}
	}
	return dedup.Config{
		Mode: cfg.Redis.Mode, Addresses: cfg.Redis.Addresses, Master: cfg.Redis.Master,
		Username: cfg.Redis.Username, Password: password, DB: cfg.Redis.DB, TLS: t,
		AssumeNoEviction: cfg.Redis.AssumeNoEviction, Horizon: cfg.Redis.Horizon, PoolSize: 32,
	}, nil
}

// columnsOf converts what the server declares for the decoder.
func columnsOf(t *writer.Table) []decode.Column {
	out := make([]decode.Column, 0, len(t.Columns))
	for _, c := range t.Columns {
		out = append(out, decode.Column{Name: c.Name, Type: c.Type, DefaultKind: c.DefaultKind, DefaultExpr: c.DefaultExpr})
	}
	return out
}

// Decoder compiles a route against the table as it is now.
func Decoder(r *config.Route, t *writer.Table) (*decode.JSON, error) {
	zone, err := time.LoadLocation(t.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("the server's time zone %q is not known here: %w; install tzdata", t.TimeZone, err)
	}
	from := map[string]string{}
	for name, c := range r.Columns {
		from[name] = c.From
	}
	unknown, missing := decode.RejectUnknown, decode.RejectMissing
	if r.UnknownFields == "ignore" {
		unknown = decode.IgnoreUnknown
	}
	if r.MissingFields == "zero" {
		missing = decode.ZeroMissing
	}
	d, err := decode.NewJSON(decode.Options{
		Columns: columnsOf(t), Key: r.Key, EventTime: r.EventTime, Ignore: r.Ignore, UnknownFields: unknown, MissingFields: missing,
		From: from, TimeZone: zone, Hasher: dedup.Hasher{}, MaxFutureMs: futureMost.Milliseconds(),
	})
	if err != nil {
		return nil, &Usage{fmt.Errorf("route into %s: %w", t, err)}
	}
	return d, nil
}

// futureMost bounds how far an event time may lie behind its record's own
// time: a slot of the store lives until its events are a horizon old.
const futureMost = 24 * time.Hour

// Domain is the dedup domain of a route into a table.
func Domain(cfg *config.Config, r *config.Route, t *writer.Table) dedup.Domain {
	return dedup.Domain{
		Database: t.Database, Table: t.Name, TableUUID: t.UUID,
		Route:     definition(r),
		EventTime: r.EventTime != "", InsertDeadline: cfg.ClickHouse.InsertDeadline, Group: cfg.Kafka.Group,
	}
}

// definition is what the keys and fingerprints of a route are made of. Sinks that differ in it would take each other's rows for new ones, or for conflicts.
func definition(r *config.Route) string {
	list := func(names []string) string { return strings.Join(escaped(names), ",") }
	return "key=" + list(r.Key) + " event_time=" + batcher.Escape(r.EventTime) + " ignore=" + list(slices.Sorted(slices.Values(r.Ignore)))
}

func escaped(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = batcher.Escape(n)
	}
	return out
}

// openTarget opens a route into its table. An error of a server that is away
// is returned as it is: the caller waits and tries again.
func (s *session) openTarget(ctx context.Context, r *config.Route) (*pipeline.Target, error) {
	cfg, server := s.cfg, s.server
	t, err := server.Describe(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	d, err := Decoder(r, t)
	if err != nil {
		return nil, err
	}
	sc, err := StoreConfig(cfg)
	if err != nil {
		return nil, err
	}
	said := newStoreLog(ctx, server, t, cfg.ClickHouse.InsertDeadline, s.log, s.o.Status, &s.first)
	asks := hooks(server, t)
	asks.Known = func(ctx context.Context) ([]uint64, error) { return s.knownEpochs(ctx, r) }
	store, err := dedup.Open(ctx, sc, Domain(cfg, r, t), asks, said.events())
	if err != nil {
		return nil, err
	}
	most := 0
	if t.PartitionKey != "" && t.PartitionKey != "tuple()" {
		most = t.MaxPartitions
	}
	return &pipeline.Target{
		Server: server, Clock: s.clock, Deadline: cfg.ClickHouse.InsertDeadline, Table: t, Store: store, Decoder: d, Key: r.Key,
		PartitionMost: most, PartitionBy: fewPartitions(t.PartitionKey, r.EventTime, most),
		Limits:  batcher.Limits{MaxRows: cfg.Batch.MaxRows, MaxBytes: int(cfg.Batch.MaxBytes), MaxAgeMs: cfg.Batch.MaxAge.Milliseconds()},
		Horizon: cfg.Redis.Horizon, EventTime: r.EventTime != "", StopOnConflict: r.OnConflict == "stop",
		PerSecond: float64(cfg.Batch.MaxInsertsPerSecond), Defaults: newEvaluator(server, d),
	}, nil
}

// knownEpochs are the largest epochs that the group's partitions into the
// route's table have committed. An intent that can't be read stops its
// partition at the assignment.
func (s *session) knownEpochs(ctx context.Context, r *config.Route) ([]uint64, error) {
	all, err := s.cluster.CommittedAll(ctx, s.cfg.Kafka.Group)
	if err != nil {
		return nil, err
	}
	var known []uint64
	for topic, partitions := range all {
		if !slices.ContainsFunc(s.cfg.RoutesOf(topic), func(o *config.Route) bool { return o.Table == r.Table }) {
			continue
		}
		for _, c := range partitions {
			in, err := offsets.Decode(c.Metadata)
			if err != nil || in == nil {
				continue
			}
			for g, epoch := range in.Epochs {
				if g == len(known) {
					known = append(known, 0)
				}
				known[g] = max(known[g], epoch)
			}
		}
	}
	return known, nil
}

// hooks answer what a quarantine has to know of ClickHouse.
func hooks(server *writer.Server, t *writer.Table) dedup.Hooks {
	return dedup.Hooks{
		Quiet: func(ctx context.Context, since time.Duration) (bool, string, error) {
			n, err := server.RunningSince(ctx, writer.TablePrefix(t.UUID), since)
			if err != nil {
				return false, "", err
			}
			return n == 0, fmt.Sprintf("inserts into %s from before still run: %d", t, n), nil
		},
		TableEmpty: func(ctx context.Context) (bool, error) { return server.Empty(ctx, t) },
		TableUUID: func(ctx context.Context) ([16]byte, error) {
			now, err := server.Describe(ctx, t.String())
			if err != nil {
				return [16]byte{}, err
			}
			return now.UUID, nil
		},
	}
}

// evaluator has the server evaluate DEFAULT expressions. One that refers to
// other columns can't be evaluated on its own; it is found once and noted. Any
// other refusal (memory, too many queries, a dictionary that is away) says
// nothing of the expression: it is returned, and whoever asked waits and asks
// again.
type evaluator struct {
	server *writer.Server
	names  []string

	mu      sync.Mutex
	refused map[string]string // name -> why
}

func newEvaluator(server *writer.Server, d *decode.JSON) *evaluator {
	e := &evaluator{server: server}
	for _, c := range d.NeedsDefaults() {
		e.names = append(e.names, c.Name)
	}
	return e
}

// Evaluate fills d with the values of this moment.
func (e *evaluator) Evaluate(ctx context.Context, d *decode.Defaults) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused == nil {
		refused := map[string]string{}
		for _, name := range e.names {
			switch err := e.server.Select(ctx, d.Query(name), d.Results(name)); {
			case err == nil:
			case needsColumns(err):
				refused[name] = err.Error()
			default:
				return fmt.Errorf("evaluate the DEFAULT of column %s: %w", name, err)
			}
		}
		e.refused = refused
	}
	var names []string
	for _, name := range e.names {
		if why, bad := e.refused[name]; bad {
			d.Unavailable(name, why)
		} else {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return e.server.Select(ctx, d.Query(names...), d.Results(names...))
}

// needsColumns tells whether the server refuses an expression because it names
// something that only a row has.
func needsColumns(err error) bool {
	var ex *writer.Exception
	if !errors.As(err, &ex) {
		return false
	}
	switch ex.Code {
	case 8, // THERE_IS_NO_COLUMN
		10,  // NOT_FOUND_COLUMN_IN_BLOCK
		16,  // NO_SUCH_COLUMN_IN_TABLE
		47,  // UNKNOWN_IDENTIFIER
		207: // AMBIGUOUS_IDENTIFIER
		return true
	}
	return false
}

func isGoneTopic(err error) bool { return errors.Is(err, offsets.ErrTopicGone) }

// fewPartitions tells for the common partition keys by time whether all rows
// between two event times lie in at most `most` partitions. nil: ask the server.
func fewPartitions(key, eventTime string, most int) pipeline.PartitionBound {
	if eventTime == "" || most <= 0 {
		return nil
	}
	var days int64
	for form, d := range map[string]int64{"toYYYYMM(%s)": 28, "toYYYYMMDD(%s)": 1, "toDate(%s)": 1, "toMonday(%s)": 7, "toStartOfMonth(%s)": 28, "toStartOfDay(%s)": 1} {
		for _, arg := range []string{"%s", "toDateTime(%s)", "fromUnixTimestamp64Milli(%s)", "toDateTime64(%s, 3)", "toDateTime(intDiv(%s, 1000))", "toDateTime(%s / 1000)"} {
			if key == fmt.Sprintf(form, fmt.Sprintf(arg, eventTime)) {
				days = d
			}
		}
	}
	if days == 0 {
		return nil
	}
	const day = 24 * 3600 * 1000
	return func(first, last int64) bool {
		// A span of n days meets at most n/days + 2 partitions, whatever the zone.
		return (last-first)/day/days+2 <= int64(most)
	}
}
