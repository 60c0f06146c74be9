package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/internal/wiring"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

var runCommand = &command{
	name: "run", summary: "consumes until stopped; with --drain until what is there now is settled",
	about: `Reads the routes' topics and writes their rows, each key once. A server that is away is waited for; a target that can't keep the promise is
refused before anything is read (see sink check). SIGTERM finishes what is under way, commits and leaves the group.
A drain ends with the account: each consumed record is in one class. "inserted" means that the record's own row is in the table, whichever process or
attempt wrote it; "duplicate" that the row of its key came from another record.
With ONCESINK_CPUPROFILE=FILE in the environment, the run's CPU profile goes there (read it with go tool pprof).`,
	examples: []string{
		"sink run -c sink.yaml",
		"sink run -c sink.yaml --drain          # up to the offsets that are the ends now, then exit 0",
		"sink run -c sink.yaml --drain --json   # the account as one JSON object",
	},
	reference: config.WriteKnobs,
	run:       runRun,
}

// patience bounds a soft stop, below the usual 30 s between SIGTERM and SIGKILL.
const patience = 20 * time.Second

func runRun(ctx context.Context, env *environment, args []string) error {
	f := env.options()
	load := f.config()
	var drain, failOnLetters, asJSON bool
	var steps string
	f.flag(&drain, "drain", "stop at the offsets that are the ends now, when all up to there is settled")
	f.flag(&failOnLetters, "fail-on-dead-letters", "exit 3 when a drain sent records to a dead-letter topic")
	f.flag(&asJSON, "json", "the account of a drain as one JSON object")
	f.text(&steps, "trace-steps", "FILE", "append each step of each batch to a file (for crash tests)")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	var show drainShow
	if drain {
		show.open(env)
	}
	env.startLog(cfg.Log)
	o := wiring.RunOptions{Log: env.log, Drain: drain, Patience: patience, Version: readBuild().Version}
	if drain {
		show.log, o.Progress = env.log, show.tell
	}
	if steps != "" {
		file, err := os.OpenFile(steps, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--trace-steps: %w", err)
		}
		defer func() { _ = file.Close() }()
		o.Steps = func(topic string, partition int32, step pipeline.Step) {
			_, _ = fmt.Fprintf(file, "%s/%d %s\n", topic, partition, step)
		}
	}
	o.Status = newStatus(cfg)
	server, err := o.Status.Serve(cfg.HTTP.Listen)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(stopping)
	}()
	stopProfile, err := env.profile()
	if err != nil {
		return err
	}
	report, err := wiring.Run(ctx, cfg, o)
	show.done()
	stopProfile()
	if err != nil {
		if errors.Is(err, wiring.ErrStopped) {
			env.log.Info("stopped", "reason", context.Cause(ctx).Error(), "state", "had not begun: "+err.Error())
			return nil
		}
		return err
	}
	return tell(env, report, drain, failOnLetters, asJSON)
}

// profileVariable names a file that gets the CPU profile of a run.
const profileVariable = "ONCESINK_CPUPROFILE"

// profile starts a profile when the environment asks for one.
func (env *environment) profile() (stop func(), err error) {
	path, _ := env.lookup(profileVariable)
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path) //nolint:gosec // the operator's choice
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", profileVariable, err)
	}
	return func() {
		pprof.StopCPUProfile()
		if err := file.Close(); err != nil {
			env.log.Warn("the CPU profile is not whole", "file", path, "error", err.Error())
		}
	}, nil
}

func newStatus(cfg *config.Config) *status.Status {
	var routes []status.Route
	for _, r := range cfg.Routes {
		for _, t := range r.Topics {
			routes = append(routes, status.Route{Topic: t, Table: cfg.Qualified(r.Table)})
		}
	}
	return status.New(status.Options{Group: cfg.Kafka.Group, Version: readBuild().Version, Routes: routes, Reasons: wiring.LetterReasons(),
		StallAfter: max(10*time.Minute, 3*cfg.ClickHouse.InsertTimeout)})
}

// tell prints the account of a drain and says no when something is left open.
func tell(env *environment, r *wiring.Report, drain, failOnLetters, asJSON bool) error {
	c := r.Counts
	if asJSON {
		if err := json.NewEncoder(env.stdout).Encode(accountOf(r)); err != nil {
			return err
		}
	} else if drain {
		if _, err := fmt.Fprintln(env.stdout, wiring.Account(c)); err != nil {
			return err
		}
	}
	if len(r.Halted) > 0 {
		return no("") // each was logged when it stopped
	}
	if letters := c.DeadLetters + c.Conflicts; drain && failOnLetters && letters > 0 {
		return no("%s went to a dead-letter topic", plural(letters, "record"))
	}
	return nil
}

// account is that of a run, for machines.
type account struct {
	Drained     bool               `json:"drained"`
	Consumed    int64              `json:"consumed"`
	Inserted    int                `json:"inserted"`
	Duplicates  int                `json:"duplicates"`
	Conflicts   int                `json:"conflicts"`
	DeadLetters int                `json:"dead_letters"`
	Filtered    int                `json:"filtered"`
	Stopped     map[string]stopped `json:"stopped"` // by topic/partition
}

type stopped struct {
	Reason string `json:"reason"`
	Cure   string `json:"cure"`
}

func accountOf(r *wiring.Report) account {
	c := r.Counts
	a := account{
		Drained: r.Drained, Consumed: c.RecordsConsumed, Inserted: c.Inserted, Duplicates: c.Duplicates(), Conflicts: c.Conflicts,
		DeadLetters: c.DeadLetters, Filtered: c.Filtered, Stopped: map[string]stopped{},
	}
	for at, h := range r.Halted {
		a.Stopped[at] = stopped{h.Reason, h.Cure}
	}
	return a
}
