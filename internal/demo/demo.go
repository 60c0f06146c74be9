// Package demo shows in one run that the sink keeps its promise: an embedded Kafka, Redis and ClickHouse, real sink processes, settlements with every
// kind of duplicate, `kill -9` and cut acknowledgements; and then the account of it.
//
// The four doors that duplicates come in by: the producer sends a record again at another offset; a batch is written twice because its acknowledgement
// was lost; a sink is killed in mid-insert and the next one cuts other batches; somebody sends a slice again by hand that is partly written already.
//
// The account is taken from SQL on the engine and from Kafka's offsets, never from what the sink says of itself. A door that did not open in a run makes
// the run fail too: it would have shown nothing.
// Not promised: the same interleaving for the same seed. The records repeat, the moments of the faults are the machine's.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/progress"
)

// Options of a run. Only Rows is needed.
type Options struct {
	Rows     int    // records of the producer, its duplicates included
	Seed     uint64 // of the records
	Sink     string // the program whose `run` is the sink; "": this one
	Progress io.Writer
	Terminal bool
	Stall    time.Duration // no row and no offset for so long: the run is given up and accounted as it is; 0: 45 s
}

// LeastRows is the smallest load in which every fault finds an insert to hit.
const LeastRows = 5_000

const (
	topic       = "settlements"
	deadLetters = "settlements.dlq"
	group       = "settlements-sink"
	database    = embedded.DefaultDatabase
	table       = "settlements"
	report      = "settlements_report"
	partitions  = 8
	window      = 1000 // blocks, of the table and of the report
)

// run is one demo under way.
type run struct {
	o     Options
	dir   string
	stack *embedded.Stack
	proxy *faultproxy.Proxy
	feed  *feed
	bar   *progress.Bar
	acts  []act
	begun time.Time
	left  error // what could not be stopped or removed

	mu       sync.Mutex
	door     string
	crashes  []Crash
	cuts     int
	lives    []time.Time // when each sink process was started
	byHand   []Resend
	seen     Seen
	troubles []string // what the sink processes did that they should not
}

// Run runs the demo and returns its account. Everything that it started is over when it returns, and its folder is gone, except for the sink's logs when
// the account is off.
func Run(ctx context.Context, o Options) (_ *Account, err error) {
	if o.Rows < LeastRows {
		return nil, fmt.Errorf("demo: %d rows are too few for its faults: at least %d", o.Rows, LeastRows)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Stall == 0 {
		o.Stall = 90 * time.Second
	}
	if o.Sink == "" {
		if o.Sink, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
	}
	r := &run{o: o, begun: time.Now(), acts: play(o.Rows)}
	if r.dir, err = os.MkdirTemp("", "oncesink-demo-"); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	keep := false
	defer func() {
		if !keep {
			err = errors.Join(err, os.RemoveAll(r.dir))
		}
	}()
	account, err := r.whole(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(errors.New("demo: stopped before its end"), r.left)
	case err != nil:
		keep = len(r.lives) > 0
		return nil, fmt.Errorf("demo: %w%s", err, r.logs())
	case !account.Balanced:
		keep = true
		account.Logs = r.logs()
	}
	return account, nil
}

// whole is the run from the first server to the last one's end.
func (r *run) whole(ctx context.Context) (account *Account, err error) {
	servers, err := os.Create(filepath.Join(r.dir, "servers.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = servers.Close() }()
	data := filepath.Join(r.dir, "data")
	_, _ = fmt.Fprintf(r.o.Progress, "demo: starting Kafka, Redis and ClickHouse in %s\n", r.dir)
	if r.stack, err = embedded.Start(ctx, embedded.StackOptions{DataDir: data, Output: servers}); err != nil {
		return nil, err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		r.left = errors.Join(r.stack.Stop(stopping), os.RemoveAll(data))
		err = errors.Join(err, r.left)
	}()
	if r.proxy, err = faultproxy.Listen(r.stack.Engine.TCPAddr); err != nil {
		return nil, err
	}
	defer r.proxy.Close()

	// A server that dies ends everything else.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		if err := r.stack.Failed(ctx); err != nil {
			cancel(err)
		}
	})
	account, err = r.faultsAndAll(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return account, err
}

// faultsAndAll plays the acts while records flow, and takes the account.
func (r *run) faultsAndAll(ctx context.Context) (*Account, error) {
	db, err := connect(ctx, r.stack.Engine.TCPAddr)
	if err != nil {
		return nil, err
	}
	defer db.close()
	if err := db.create(ctx); err != nil {
		return nil, err
	}
	o := load.Options{
		Seed: r.o.Seed, Rows: r.o.Rows, Duplicates: 0.05, Elsewhere: 0.5, Partitions: partitions,
		Start: time.Now().Add(-time.Hour).Truncate(time.Millisecond),
	}
	truth := load.TruthOf(o)
	if r.feed, err = openFeed(ctx, r.stack.Kafka.Addr, len(r.acts), o); err != nil {
		return nil, err
	}
	defer r.feed.close()

	r.bar = progress.Start(progress.Options{W: r.o.Progress, Label: "demo", Unit: "rows in the table", Total: truth.Keys, Terminal: r.o.Terminal})
	defer r.bar.Done()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	help := func(f func(context.Context) error) (stop func()) {
		ctx, leave := context.WithCancel(ctx)
		ended := make(chan struct{})
		helpers.Go(func() {
			defer close(ended)
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
		return func() { leave(); <-ended }
	}
	stopFeed, stopHand, stopWatch := help(r.feed.produce), help(r.resendByHand), help(r.watch)
	err = r.perform(ctx)
	// The last act waits for all of it; when it gave up, they are stopped in what they do: first who sends, then who looks.
	stopHand()
	stopFeed()
	stopWatch()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	return r.account(ctx, db, truth)
}
