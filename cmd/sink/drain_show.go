package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/oncesink/oncesink/internal/progress"
)

// drainLogEvery is how often a drain tells how far it is where there is no terminal.
const drainLogEvery = 10 * time.Second

// drainShow shows how far a drain is: a bar on a terminal, with the log above it, and lines in the log elsewhere.
type drainShow struct {
	screen *progress.Screen // nil: no terminal
	bar    *progress.Bar
	log    *slog.Logger
	now    func() time.Time // nil: the clock

	begun, told time.Time
}

// open takes the terminal, before the log is opened on it.
func (d *drainShow) open(env *environment) {
	if progress.IsTerminal(env.stderr) {
		d.screen = progress.NewScreen(env.stderr)
		env.stderr = d.screen
	}
}

// tell is called a few times a second, by one goroutine at a time.
func (d *drainShow) tell(done, total int64) {
	now := time.Now()
	if d.now != nil {
		now = d.now()
	}
	if d.begun.IsZero() {
		d.begun, d.told = now, now
		if d.screen != nil {
			d.bar = progress.Start(progress.Options{W: d.screen.Bar(), Label: "drain", Unit: "records", Total: total, Terminal: true, Now: d.now})
		}
	}
	if d.bar != nil {
		d.bar.Set(done)
		return
	}
	if now.Sub(d.told) < drainLogEvery {
		return
	}
	d.told = now
	d.log.Info("draining", "done", done, "of", total, "share", fmt.Sprintf("%.0f %%", 100*float64(done)/float64(max(total, 1))),
		"speed", progress.Speed(done, total, now.Sub(d.begun)))
}

func (d *drainShow) done() {
	if d.bar != nil {
		d.bar.Done()
	}
}
