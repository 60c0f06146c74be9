//go:build chaos

package e2e

import (
	"context"
	"syscall"
	"time"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

func processSchedules() []schedule {
	return []schedule{
		{name: "kills", run: (*arena).kills},
		{name: "kills-missed", settings: settings{member: "-"}, span: 24 * time.Second, run: (*arena).killsMissed},
		{name: "zombies", settings: settings{member: "-"}, span: 30 * time.Second, run: (*arena).zombies},
		{name: "rebalance-storm", settings: settings{member: "-"}, account: false, span: 20 * time.Second, run: (*arena).storm},
	}
}

// kills: kill -9 at any moment; the next process takes the place and the partitions at once.
func (a *arena) kills() {
	for a.feeding(a.between(100*time.Millisecond, 900*time.Millisecond)) {
		s := a.anySeat()
		a.unseat(s, syscall.SIGKILL)
		a.count("kill -9")
		a.seat(s)
	}
}

// killsMissed: kill -9 of members that the group misses only after their session, so that others take over what they had begun.
func (a *arena) killsMissed() {
	for a.feeding(a.between(2*time.Second, 4*time.Second)) {
		s := a.anySeat()
		a.unseat(s, syscall.SIGKILL)
		a.count("kill -9")
		a.feeding(a.between(3*time.Second, 5*time.Second))
		a.seat(s)
	}
}

// zombies: a process stands still at a step of its batch for longer than its session, then goes on as if nothing had happened.
func (a *arena) zombies() {
	steps := []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting, pipeline.StepWritten, pipeline.StepPublished}
	for n := 0; a.feeding(a.between(200*time.Millisecond, 800*time.Millisecond)); n++ {
		p := a.sinkIn(a.anySeat())
		step := steps[n%len(steps)]
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := p.trace.awaitStep(ctx, step, 1)
		cancel()
		if err != nil || !p.running() {
			continue
		}
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(4500 * time.Millisecond) // the session is 3 s
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		a.count("zombies at " + string(step))
	}
}

// storm: members leave and join again all the time.
func (a *arena) storm() {
	for a.feeding(a.between(200*time.Millisecond, 700*time.Millisecond)) {
		s := a.anySeat()
		if a.rng.IntN(3) == 0 {
			a.unseat(s, syscall.SIGKILL)
			a.count("kills")
		} else {
			a.unseat(s, syscall.SIGTERM)
			a.count("leaves")
		}
		a.feeding(a.between(0+1, 500*time.Millisecond))
		a.seat(s)
		a.count("joins")
	}
}
