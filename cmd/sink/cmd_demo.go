package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/oncesink/oncesink/internal/demo"
	"github.com/oncesink/oncesink/internal/progress"
)

var demoCommand = &command{
	name: "demo", summary: "everything embedded: duplicates of all kinds, crashes and cut connections, then the account",
	about: "Starts a Kafka, a Redis and a ClickHouse of its own on free ports, sends settlements with duplicates through real sink processes that are killed and cut off\n" +
		"meanwhile, and then counts. Exit 0: each settlement is there exactly once; 3: something is off, and what. Nothing is left behind but, when something is\n" +
		"off, the sink's log.",
	examples: []string{
		"sink demo",
		"sink demo --rows 1000000 --seed 7",
		"sink demo --json 2>/dev/null   # the account as one JSON object",
	},
	run: runDemo,
}

func runDemo(ctx context.Context, env *environment, args []string) error {
	f, asJSON := env.options(), false
	o := demo.Options{Rows: 200_000, Progress: env.stderr, Terminal: progress.IsTerminal(env.stderr)}
	var seed int
	f.number(&o.Rows, "rows", "N", "records of the producer, its duplicates included")
	f.number(&seed, "seed", "S", "makes the same settlements again; 0: others each time")
	f.flag(&asJSON, "json", "the account as one JSON object")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	if o.Rows < demo.LeastRows {
		return f.usage("--rows %d is too few for the faults to find something to hit: at least %d", o.Rows, demo.LeastRows)
	}
	if o.Seed = uint64(seed); seed == 0 { //nolint:gosec // any number is a seed
		o.Seed = uint64(time.Now().UnixMilli() % 1_000_000) //nolint:gosec // not negative
	}
	account, err := demo.Run(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(env.stdout).Encode(account)
	} else {
		err = account.Write(env.stdout)
	}
	if err != nil {
		return err
	}
	if !account.Balanced {
		return no("the demo does not balance: %s.%s", account.Faults[0], account.Logs)
	}
	return nil
}
