package wiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Warmed is what warming a table's domain came to.
type Warmed struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows_read"`
	Added int64  `json:"keys_added"`   // not remembered before
	Older int64  `json:"rows_skipped"` // older than the horizon: those are looked up in ClickHouse anyway
}

// WarmEvents tell people how far it is. Each may be nil.
type WarmEvents struct {
	Waits func(reason string)
	Total func(rows int64)
	Done  func(rows int64)
}

// warmChunk is how many keys go to the store at once.
const warmChunk = 20_000

// Warm rebuilds what the dedup store remembers of a route's table: every key of
// the last horizon that the table has, or every key of it without event_time.
// Then verify mode ends. Sinks may run meanwhile.
func Warm(ctx context.Context, cfg *config.Config, r *config.Route, events WarmEvents) (*Warmed, error) {
	server, err := Server(cfg, writer.Events{})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	t, err := server.Describe(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	sc, err := StoreConfig(cfg)
	if err != nil {
		return nil, err
	}
	d := Domain(cfg, r, t)
	d.Group = dedup.WarmGroup
	store, err := dedup.Open(ctx, sc, d, hooks(server, t), dedup.Events{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	for {
		w := &warming{cfg: cfg, route: r, table: t, server: server, store: store, events: events, out: Warmed{Table: t.String()}}
		err := w.run(ctx)
		var changed *dedup.EpochChanged
		if errors.As(err, &changed) && ctx.Err() == nil {
			w.waits("the store lost writes again meanwhile: beginning anew")
			continue
		}
		return &w.out, err
	}
}

type warming struct {
	cfg    *config.Config
	route  *config.Route
	table  *writer.Table
	server *writer.Server
	store  *dedup.Store
	events WarmEvents
	out    Warmed

	decoder *decode.JSON
	block   *decode.Block
	oldest  int64
	ticket  dedup.Ticket
	items   []dedup.Item
	seen    map[batcher.Key]bool
	reply   dedup.Reply
	told    string
}

func (w *warming) waits(reason string) {
	if w.events.Waits != nil && w.told != reason {
		w.told = reason
		w.events.Waits(reason)
	}
}

func (w *warming) run(ctx context.Context) (err error) {
	if err := w.compile(); err != nil {
		return err
	}
	if w.ticket, err = w.awaitOpen(ctx); err != nil {
		return err
	}
	// Read after the quarantines: nothing of an earlier epoch can be written now.
	where := ""
	if w.route.EventTime != "" {
		w.oldest = time.Now().Add(-w.cfg.Redis.Horizon).UnixMilli()
		where = w.table.Since(w.route.EventTime, w.oldest)
	}
	total, err := w.server.Count(ctx, w.table, where)
	if err != nil {
		return err
	}
	if w.events.Total != nil {
		w.events.Total(total)
	}
	if err := w.server.ScanKeys(ctx, w.table, w.route.Key, where, func(rows []string) error { return w.take(ctx, rows) }); err != nil {
		return err
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	if err := w.store.WarmDone(ctx, w.ticket); err != nil {
		return fmt.Errorf("end verify mode: %w", err)
	}
	return nil
}

// compile makes a decoder of the key columns alone: the same code that makes
// keys of records makes those of rows.
func (w *warming) compile() error {
	zone, err := time.LoadLocation(w.table.TimeZone)
	if err != nil {
		return fmt.Errorf("the server's time zone %q is not known here: %w; install tzdata", w.table.TimeZone, err)
	}
	var columns []decode.Column
	for _, c := range columnsOf(w.table) {
		for _, k := range w.route.Key {
			if c.Name == k {
				c.DefaultKind, c.DefaultExpr = "", ""
				columns = append(columns, c)
			}
		}
	}
	w.decoder, err = decode.NewJSON(decode.Options{Columns: columns, Key: w.route.Key, EventTime: w.route.EventTime, TimeZone: zone, Hasher: dedup.Hasher{}})
	if err != nil {
		return &Usage{fmt.Errorf("route into %s: %w", w.table, err)}
	}
	w.block, w.seen = w.decoder.NewBlock(), map[batcher.Key]bool{}
	return nil
}

func (w *warming) awaitOpen(ctx context.Context) (dedup.Ticket, error) {
	for {
		t, err := w.store.AwaitOpen(ctx)
		var hold *dedup.Quarantine
		if !errors.As(err, &hold) {
			return t, err
		}
		w.waits(hold.Error())
		select {
		case <-ctx.Done():
			return t, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (w *warming) take(ctx context.Context, rows []string) error {
	for _, row := range rows {
		if w.block.Rows() >= warmChunk {
			w.block.Reset()
		}
		k, rej := w.decoder.Append(w.block, &decode.Record{TimestampMs: -1, Value: []byte(row)})
		if rej != nil {
			return fmt.Errorf("the key %s of a row can't be read as a record's would be: %w", row, rej)
		}
		w.out.Rows++
		switch {
		case w.oldest > 0 && k.EventTimeMs < w.oldest:
			w.out.Older++
			continue
		case w.seen[k.Key]:
			continue
		}
		w.seen[k.Key] = true
		if w.items = append(w.items, dedup.Item{Key: k.Key, EventMs: k.EventTimeMs}); len(w.items) == warmChunk {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	if w.events.Done != nil {
		w.events.Done(w.out.Rows)
	}
	return nil
}

func (w *warming) flush(ctx context.Context) error {
	if len(w.items) == 0 {
		return nil
	}
	n, err := w.store.Warm(ctx, w.ticket, w.items, &w.reply)
	if err != nil {
		return err
	}
	w.out.Added += int64(n)
	w.items = w.items[:0]
	clear(w.seen)
	return nil
}
