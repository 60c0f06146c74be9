//go:build chaos

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// attack is one attempt to have a row lost, or there twice, if only for a moment. It knows the documents and no source.
type attack struct {
	name   string
	door   string // or link
	what   string
	design design
	store  storeKind
	rows   int // of the load, duplicates included; 0: 2,000
	spread time.Duration
	run    func(r *rig)
}

const (
	doorProducer = "producer"
	doorLate     = "same batch again"
	doorRestart  = "restart"
	doorResend   = "manual re-send"
	linkKafka    = "Kafka"
	linkRedis    = "Redis"
	linkEngine   = "ClickHouse"
)

func attacks() (all []attack) {
	for _, of := range [][]attack{
		producerAttacks(), lateAttacks(), restartAttacks(), resendAttacks(), kafkaAttacks(), redisAttacks(), engineAttacks(), mixedAttacks(), settingAttacks(),
	} {
		all = append(all, of...)
	}
	return all
}

// TestAttack runs the attacks one by one, each with servers of its own but for Kafka, prints the table and keeps it in docs/attacks.md.
//
//	ONCESINK_ATTACK_ONLY   names, or their beginnings, by comma
//	ONCESINK_CHAOS_SEED    of the random moments and of the load
//
// An attack has failed when, at each sample of 100 ms and at the end, no key is in the table twice and no view is ahead of what was produced, and when at
// the end every key is in the table and in each view, or its record in the dead letters, and everything is committed, if need be by the commands that a
// partition that stopped has named.
func TestAttack(t *testing.T) {
	only := os.Getenv("ONCESINK_ATTACK_ONLY")
	seed := uint64(size(t, "ONCESINK_CHAOS_SEED", int(rand.Uint32())))
	out := attackReport{t: t, seed: seed, commit: said("git", "rev-parse", "--short", "HEAD"), lines: map[string]string{}}
	fmt.Printf("seed %d, commit %s\n%s", seed, out.commit, attackHeading)
	b := startBroker(t)
	met := 0
	for n, a := range attacks() {
		if !chosen(a.name, only) {
			continue
		}
		met++
		began := time.Now()
		var r *rig
		dir, err := os.MkdirTemp("", "oncesink-attack-"+a.name+"-")
		if err != nil {
			t.Fatal(err)
		}
		ok := t.Run(a.name, func(t *testing.T) {
			r = newRig(t, &a, b, dir, rand.New(rand.NewPCG(seed, uint64(n))), seed+uint64(n))
			a.run(r)
			r.judge()
		})
		out.add(&a, r, ok, time.Since(began))
		if ok {
			_ = os.RemoveAll(dir)
		} else {
			fmt.Printf("  logs of %s: %s\n", a.name, dir)
		}
	}
	if met == 0 {
		t.Fatalf("no attack is named %q", only)
	}
}

const attackHeading = "| attack | door or link | what was done | result | seconds | commit |\n|---|---|---|---|---|---|\n"

type attackReport struct {
	t      testing.TB
	seed   uint64
	commit string
	lines  map[string]string
}

func (o *attackReport) add(a *attack, r *rig, ok bool, took time.Duration) {
	result := "held"
	if !ok {
		result = "**NOT HELD**"
	}
	if r != nil {
		r.mu.Lock()
		if r.did.String() != "" {
			result += "; " + r.did.String()
		}
		if r.stops > 0 {
			result += fmt.Sprintf("; %d stops, gone on as told", r.stops)
		}
		result += fmt.Sprintf("; %d samples", r.seen.taken)
		if !ok {
			result += fmt.Sprintf("; lost %d, doubled %d", r.lost, r.doubled)
		}
		for _, n := range r.notes {
			fmt.Printf("  note of %s: %s\n", a.name, n)
		}
		r.mu.Unlock()
	}
	o.lines[a.name] = fmt.Sprintf("| %s | %s | %s | %s | %.0f | %s |", a.name, a.door, a.what, result, took.Seconds(), o.commit)
	fmt.Println(o.lines[a.name])
	o.write()
}

var attackRow = regexp.MustCompile(`(?m)^\| ([a-z0-9-]+) \|.*$`)

// write puts the rows of this run in the place of their predecessors.
func (o *attackReport) write() {
	path := filepath.Join("..", "..", "docs", "attacks.md")
	old, _ := os.ReadFile(path) // none at the first run
	lines := map[string]string{}
	for _, m := range attackRow.FindAllStringSubmatch(string(old), -1) {
		lines[m[1]] = m[0]
	}
	for name, line := range o.lines {
		lines[name] = line
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Attacks

Written by `+"`make attacks [ONLY=name]`"+` itself. Each attack is a script in internal/e2e/attacks_*_test.go that tries to have a row lost, or there twice (in the table or
in a view, if only for a moment), by what a producer, a network, an operator or a server may do. Real broker, redis-server and ClickHouse engine, a fault proxy
on each link, insert_deadline 1 s. Every 100 ms rows are held against keys and the view against what was produced; at the end every key has to be in the table and
in its views exactly once (or its record in the dead letters) and everything committed.
"n stops, gone on as told": a partition stopped by rule (I4) and went on by the command that its log line names. A row's commit is the one that it was last run on.

Last run: %s, commit %s, seed %d. %s

%s`, time.Now().UTC().Format("2006-01-02 15:04 MST"), o.commit, o.seed, versions(), attackHeading)
	for _, a := range attacks() {
		if line := lines[a.name]; line != "" {
			b.WriteString(line + "\n")
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		o.t.Error(err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a document
		o.t.Error(err)
	}
}
