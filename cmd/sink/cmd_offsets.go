package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/ops"
	"github.com/oncesink/oncesink/pkg/offsets"
)

var offsetsCommand = &command{
	name: "offsets", summary: "what each partition has committed and waits for, and the ways on when one stopped",
	usage: "show | resolve | accept-gap | drop-intent",
	about: `show reads the group: committed offset, ends of the log, lag, and the intent (inserts that were under way).
resolve takes one way on for partitions that stopped. It prints what it would commit and what follows from it; --apply does it. The sink must be stopped.
accept-gap is resolve for records that are gone from the log before they were read (retention, a deletion): the group goes on where the log starts.
drop-intent is resolve --drop-intent: the offset stays, the list of inserts under way is dropped.
With --partition 0,3,5 or all it is the same way on for several: all means those with inserts under way (accept-gap: with a gap), whether or not they had stopped, so the views must be
right for each range that the plan lists. When one of them can't be resolved like this, none is changed.`,
	examples: []string{
		"sink offsets show -c sink.yaml",
		"sink offsets resolve -c sink.yaml --topic settlements --partition 3 --views-recomputed            # after recomputing the views that it named",
		"sink offsets resolve -c sink.yaml --topic settlements --partition 0,3,5 --views-recomputed --apply",
		"sink offsets resolve -c sink.yaml --topic settlements --partition all --views-recomputed          # after recomputing the views as a whole",
		"sink offsets resolve -c sink.yaml --topic settlements --partition 3 --to 150 --apply              # go on at an offset",
		"sink offsets accept-gap -c sink.yaml --topic settlements --partition all                          # what is lost, before --apply",
		"sink offsets drop-intent -c sink.yaml --topic settlements --partition 3 --apply",
	},
	run: runOffsets,
}

func runOffsets(ctx context.Context, env *environment, args []string) error {
	f := env.options()
	load := f.config()
	r := ops.Resolution{To: -1, Last: -1}
	var partition, asRange, to string
	var asJSON, apply bool
	f.flag(&asJSON, "json", "one JSON object")
	f.text(&r.Topic, "topic", "NAME", "the topic to resolve")
	f.text(&partition, "partition", "N", "its partition, several (0,3,5), or all that have inserts under way (accept-gap: a gap)")
	f.text(&to, "to", "OFFSET", "resolve: go on from this offset")
	f.flag(&r.Drop, "drop-intent", "resolve: keep the offset, drop the list of inserts under way")
	f.flag(&r.Vouch, "views-recomputed", "resolve: the views were recomputed, so the table's word counts for them too")
	f.text(&asRange, "range", "FIRST-LAST", "resolve: with --views-recomputed, a range that no intent lists")
	f.flag(&apply, "apply", "do it; without this only the plan is printed")
	rest, err := f.parse(args, 1)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return f.usage("say `show`, `resolve`, `accept-gap` or `drop-intent`")
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	switch rest[0] {
	case "show":
		return showOffsets(ctx, env, cfg, asJSON)
	case "resolve", "accept-gap", "drop-intent":
		if rest[0] != "resolve" && (to != "" || asRange != "" || r.Vouch || r.Drop) {
			return f.usage("%s is a way on by itself: --to, --range, --views-recomputed and --drop-intent belong to `resolve`", rest[0])
		}
		r.Gap, r.Drop = rest[0] == "accept-gap", r.Drop || rest[0] == "drop-intent"
		if err := readResolution(&r, partition, to, asRange); err != nil {
			return f.usage("%s", err)
		}
		return resolveOffsets(ctx, env, cfg, r, apply, asJSON)
	}
	return f.usage("unknown word %q: say `show`, `resolve`, `accept-gap` or `drop-intent`", rest[0])
}

func readResolution(r *ops.Resolution, partition, to, asRange string) error {
	if r.Topic == "" || partition == "" {
		return fmt.Errorf("name the partition with --topic and --partition")
	}
	var err error
	if r.Partitions, err = readPartitions(partition); err != nil {
		return err
	}
	ways := 0
	if to != "" {
		if r.To, err = strconv.ParseInt(to, 10, 64); err != nil || r.To < 0 {
			return fmt.Errorf("--to %q is no offset", to)
		}
		ways++
	}
	if asRange != "" {
		first, last, ok := strings.Cut(asRange, "-")
		var err1, err2 error
		r.First, err1 = strconv.ParseInt(first, 10, 64)
		r.Last, err2 = strconv.ParseInt(last, 10, 64)
		if !ok || err1 != nil || err2 != nil || !r.Vouch {
			return fmt.Errorf("--range %q: want FIRST-LAST together with --views-recomputed", asRange)
		}
	}
	for _, b := range []bool{r.Drop, r.Vouch, r.Gap} {
		if b {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("choose one of --to, --drop-intent and --views-recomputed")
	}
	if len(r.Partitions) != 1 && (to != "" || asRange != "") {
		return fmt.Errorf("--to and --range are about one partition, --partition is %s", partition)
	}
	return nil
}

// readPartitions reads 3, 0,3,5 or all; all is nil.
func readPartitions(text string) ([]int32, error) {
	if text == "all" {
		return nil, nil
	}
	var out []int32
	for _, one := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(one), 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--partition %q: want a number, several like 0,3,5, or all", text)
		}
		out = append(out, int32(n))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func showOffsets(ctx context.Context, env *environment, cfg *config.Config, asJSON bool) error {
	all, err := ops.ShowOffsets(ctx, cfg)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(env.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(env.stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "group %s: %s, %s\n", all.Group, all.State, plural(all.Members, "member"))
	_, _ = fmt.Fprintln(w, "TOPIC\tPARTITION\tSTART\tCOMMITTED\tEND\tLAG\tINTENT\tNOTE")
	for _, p := range all.Partitions {
		committed := "-"
		if p.Committed >= 0 {
			committed = strconv.FormatInt(p.Committed, 10)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\n", p.Topic, p.Partition, p.Start, committed, p.End, p.Lag, intentText(p.Intent), p.Note)
	}
	return w.Flush()
}

// intentText names the sets that an intent lists.
func intentText(in *offsets.Intent) string {
	if in == nil {
		return "none"
	}
	var sets []string
	for _, e := range in.Entries {
		for _, t := range e.Tables {
			s := fmt.Sprintf("%s %s until %s", e.Range, plural(t.Rows, "row"), t.Deadline.UTC().Format("15:04:05.000"))
			if e.Late != nil {
				s += " (late rows)"
			}
			if t.Vouched {
				s += " (views vouched for)"
			}
			sets = append(sets, s)
		}
	}
	if in.Passed > 0 {
		sets = append(sets, fmt.Sprintf("read again up to %d", in.Passed))
	}
	return strings.Join(sets, "; ")
}

func resolveOffsets(ctx context.Context, env *environment, cfg *config.Config, r ops.Resolution, apply, asJSON bool) error {
	plans, err := ops.PlanResolution(ctx, cfg, r)
	if err != nil {
		return err
	}
	for _, p := range plans.Plans {
		if asJSON {
			err = json.NewEncoder(env.stdout).Encode(p)
		} else {
			_, err = fmt.Fprintf(env.stdout, "%s/%d: committed %d with intent %s\n  would become %d with intent %s\n  %s\n", p.Before.Topic, p.Before.Partition,
				p.Before.Committed, intentText(p.Before.Intent), p.Offset, intentText(p.Intent), strings.Join(p.Consequence, "\n  "))
		}
		if err != nil {
			return err
		}
	}
	if n := len(plans.Idle); n > 0 {
		_, _ = fmt.Fprintf(env.stderr, "%s without inserts under way: nothing to resolve there\n", plural(n, "partition"))
	}
	if !apply {
		_, err := fmt.Fprintln(env.stderr, "nothing was changed; --apply does it")
		return err
	}
	if err := ops.Apply(ctx, cfg, plans.Plans); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stderr, "done: %s\n", plural(len(plans.Plans), "partition"))
	return err
}
