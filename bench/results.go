package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oncesink/oncesink/bench/load"
)

// figures are what one run came to. Its table was compared with the truth.
type figures struct {
	cost
	Rows             int           `json:"rows"`
	RowsPerCPUSecond float64       `json:"rows_per_cpu_second"`
	BytesPerKey      float64       `json:"redis_bytes_per_key,omitempty"`
	RedisPerRow      time.Duration `json:"redis_cpu_per_row_ns,omitempty"`
}

type results struct {
	Rows       int       `json:"rows"`
	Keys       int64     `json:"keys"`
	Seed       uint64    `json:"seed"`
	Partitions int       `json:"partitions"`
	CPUs       int       `json:"cpus"`
	Full       []figures `json:"full"`
	Bare       []figures `json:"bare"`
	// Ratios are those of rows per CPU-second: each bare run against the mean
	// of the full ones before and after it.
	Ratios  []float64 `json:"ratios"`
	Ratio   float64   `json:"ratio"`  // their median
	Spread  float64   `json:"spread"` // of the full runs: the most over the least, less one
	Steady  bool      `json:"steady"` // the spread allows a verdict
	Latency *latency  `json:"latency,omitempty"`
	Profile []string  `json:"profile,omitempty"`
}

const (
	spreadMost = 0.15
	ratioMust  = 0.60
)

func newResults(o options, t load.Truth) *results {
	return &results{Rows: o.rows, Keys: t.Keys, Seed: o.seed, Partitions: o.partitions, CPUs: runtime.NumCPU()}
}

// judge compares the runs.
func (r *results) judge() {
	least, most := math.Inf(1), 0.0
	for _, f := range r.Full {
		least, most = min(least, f.RowsPerCPUSecond), max(most, f.RowsPerCPUSecond)
	}
	r.Spread = most/least - 1
	r.Steady = r.Spread <= spreadMost
	for i, b := range r.Bare {
		around := (r.Full[i].RowsPerCPUSecond + r.Full[i+1].RowsPerCPUSecond) / 2
		r.Ratios = append(r.Ratios, around/b.RowsPerCPUSecond)
	}
	r.Ratio = median(r.Ratios)
}

func median(list []float64) float64 {
	s := append([]float64(nil), list...)
	sort.Float64s(s)
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (r *results) verdict() string {
	switch {
	case !r.Steady:
		return fmt.Sprintf("no verdict: the full runs differ by %.0f %%, more than %.0f %%; repeat it on a quieter machine", 100*r.Spread, 100*spreadMost)
	case r.Ratio >= ratioMust:
		return fmt.Sprintf("at least %.2f: good", ratioMust)
	default:
		return fmt.Sprintf("below %.2f: too expensive", ratioMust)
	}
}

func (r *results) print(out io.Writer) error {
	var s strings.Builder
	fmt.Fprintf(&s, "%d records, %d keys, %d partitions, seed %d, %d CPUs; JSON, LZ4; every table exact\n\n", r.Rows, r.Keys, r.Partitions, r.Seed, r.CPUs)
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "run\trows\twall s\tCPU s\trows/CPU-s\tns/row\tRSS max MB\tRedis ns/row\tRedis B/key\t")
	row := func(name string, f figures) {
		busy, key := "-", "-"
		if f.BytesPerKey > 0 {
			busy, key = fmt.Sprint(f.RedisPerRow.Nanoseconds()), fmt.Sprintf("%.1f", f.BytesPerKey)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%s\t%s\t\n", name, f.Rows, f.Wall.Seconds(), f.CPU.Seconds(), f.RowsPerCPUSecond,
			1e9/f.RowsPerCPUSecond, float64(f.RSSMax)/1e6, busy, key)
	}
	for i, f := range r.Full {
		if i > 0 {
			row(fmt.Sprintf("bare %d", i), r.Bare[i-1])
		}
		row(fmt.Sprintf("full %d", i+1), f)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	list := make([]string, len(r.Ratios))
	for i, x := range r.Ratios {
		list[i] = fmt.Sprintf("%.2f", x)
	}
	if len(r.Ratios) > 0 {
		fmt.Fprintf(&s, "\nratio full/bare, rows per CPU-second: %s; median %.2f (%s)\n", strings.Join(list, ", "), r.Ratio, r.verdict())
	}
	s.WriteString("wall and CPU include the start, with the sink's checks of its target\n")
	if l := r.Latency; l != nil {
		fmt.Fprintf(&s, "latency at %d/s, max_age %s: p50 %d ms, p99 %d ms, max %d ms, from a record's making to its row being visible; %d rows in %d parts, exact\n",
			l.Rate, l.MaxAge, l.P50.Milliseconds(), l.P99.Milliseconds(), l.Most.Milliseconds(), l.Rows, l.Parts)
	}
	if len(r.Profile) > 0 {
		s.WriteString("\nCPU profile of the last full run:\n" + strings.Join(r.Profile, "\n") + "\n")
	}
	_, err := io.WriteString(out, s.String())
	return err
}

// topTen has the Go tool read a profile.
func topTen(ctx context.Context, program, profile string) ([]string, error) {
	text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=10", program, profile).Output() //nolint:gosec // a file of our own
	if err != nil {
		return nil, fmt.Errorf("go tool pprof -top %s: %w", profile, err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}
