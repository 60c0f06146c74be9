package wiring

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/writer"
)

// storeLog tells what becomes of a table's store of keys. A store that is new with its table is as it should be; one that was emptied, or is another, is
// told as a loss.
type storeLog struct {
	table    *writer.Table
	deadline time.Duration
	log      *slog.Logger
	status   *status.Status

	// fresh: the table is empty, so that no claim can have been lost with the store.
	fresh atomic.Bool
	// first: the store's first quarantine is under way, and no cause for alarm.
	first *atomic.Bool
	told  atomic.Bool
}

// newStoreLog looks whether the table is new.
func newStoreLog(ctx context.Context, server *writer.Server, t *writer.Table, deadline time.Duration, log *slog.Logger, st *status.Status, first *atomic.Bool) *storeLog {
	l := &storeLog{table: t, deadline: deadline, log: log, status: st, first: first}
	empty, err := server.Empty(ctx, t)
	l.fresh.Store(err == nil && empty)
	return l
}

func (l *storeLog) events() dedup.Events {
	return dedup.Events{
		EpochRaised: func(group int, epoch uint64, reason string) {
			if l.fresh.Load() && reason == dedup.ReasonNew {
				l.first.Store(true)
				if l.told.CompareAndSwap(false, true) {
					l.log.Info("dedup store: the first start with an empty table, all as it should be; before the first claims it waits once, until no insert of an earlier life could still start",
						"table", l.table.String(), "waits_about", l.deadline.String())
				}
				return
			}
			l.status.EpochChanged(l.table.String())
			l.log.Warn("dedup store: new epoch, claims made before are void", "table", l.table.String(), "hash_group", group, "epoch", epoch, "reason", reason)
		},
		Quarantined: func(group int, until time.Time, reason string) {
			if !l.first.Load() {
				l.log.Info("dedup store: quarantine, claims wait", "table", l.table.String(), "hash_group", group, "until", until, "reason", reason)
			}
		},
		Opened: func(group int, epoch uint64, verify bool) {
			l.fresh.Store(false)
			l.first.Store(false)
			l.log.Info("dedup store: quarantine is over", "table", l.table.String(), "hash_group", group, "epoch", epoch, "verify_mode", verify)
		},
	}
}

// expected tells whether a wait is that of a first start.
func expected(first *atomic.Bool, reason string) bool {
	return first.Load() && strings.Contains(reason, "in quarantine")
}
