package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/wiring"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// PartitionOffsets is what one partition of the group looks like from Kafka.
type PartitionOffsets struct {
	Topic     string          `json:"topic"`
	Partition int32           `json:"partition"`
	Start     int64           `json:"log_start"`
	Committed int64           `json:"committed"` // -1: none
	Stable    int64           `json:"log_stable"`
	End       int64           `json:"log_end"`
	Lag       int64           `json:"lag"`
	Intent    *offsets.Intent `json:"intent,omitempty"`
	Unread    error           `json:"-"`              // why the intent can't be read: by a newer version, or damaged
	Note      string          `json:"note,omitempty"` // what a reader should know: a gap, an unreadable intent, an open transaction

	epochs []uint64 // see offsets.Intent
}

// Offsets is a group as Kafka has it.
type Offsets struct {
	Group      string             `json:"group"`
	State      string             `json:"state"`
	Members    int                `json:"members"`
	Partitions []PartitionOffsets `json:"partitions"`
}

// kafka opens a client for a short command, and does not wait for a server that is away.
func kafka(ctx context.Context, cfg *config.Config) (*kgo.Client, *offsets.Cluster, error) {
	opts, err := wiring.KafkaOptions(cfg)
	if err != nil {
		return nil, nil, &wiring.Usage{Err: err}
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, nil, &wiring.Usage{Err: fmt.Errorf("kafka: %w", err)}
	}
	cluster := offsets.NewCluster(cl)
	if err := wiring.ReachKafka(ctx, cfg, cluster); err != nil {
		cl.Close()
		return nil, nil, err
	}
	return cl, cluster, nil
}

// ShowOffsets reads what the group has committed, with the intents.
func ShowOffsets(ctx context.Context, cfg *config.Config) (*Offsets, error) {
	cl, cluster, err := kafka(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	out := &Offsets{Group: cfg.Kafka.Group}
	state, err := cluster.GroupState(ctx, cfg.Kafka.Group)
	if err != nil {
		return nil, err
	}
	out.State, out.Members = state.State, state.Members
	topics, err := wiring.Topics(ctx, cfg, cluster)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(topics))
	for n := range topics {
		names = append(names, n)
	}
	if len(names) == 0 {
		return out, nil
	}
	bounds, err := cluster.Bounds(ctx, names...)
	if err != nil {
		return nil, err
	}
	committed, err := cluster.CommittedAll(ctx, cfg.Kafka.Group)
	if err != nil {
		return nil, err
	}
	for topic, ps := range bounds {
		for p, b := range ps {
			c, known := committed[topic][p]
			if !known {
				c.Offset = -1
			}
			out.Partitions = append(out.Partitions, describePartition(topic, p, b, c))
		}
	}
	sort.Slice(out.Partitions, func(i, j int) bool {
		a, b := out.Partitions[i], out.Partitions[j]
		return a.Topic < b.Topic || a.Topic == b.Topic && a.Partition < b.Partition
	})
	return out, nil
}

func describePartition(topic string, p int32, b offsets.Bounds, c offsets.Committed) PartitionOffsets {
	o := PartitionOffsets{Topic: topic, Partition: p, Start: b.Start, Stable: b.Stable, End: b.High, Committed: c.Offset, Lag: b.High - max(c.Offset, b.Start)}
	in, err := offsets.Decode(c.Metadata)
	switch {
	case err != nil:
		o.Unread, o.Note = err, err.Error()
	case c.Offset >= 0 && c.Offset < b.Start:
		o.Note = fmt.Sprintf("offsets [%d..%d] are gone from the log", c.Offset, b.Start-1)
	case c.Offset > b.High:
		o.Note = fmt.Sprintf("the committed offset lies %d beyond the end of the log: the topic was created again, or lost its tail", c.Offset-b.High)
	case b.Stable < b.High:
		o.Note = fmt.Sprintf("an open transaction holds read_committed readers at %d", b.Stable)
	case c.Offset < 0:
		o.Note = "nothing committed yet"
	}
	if in != nil {
		o.epochs = in.Epochs
		if !in.Empty() {
			o.Intent = in
		}
	}
	return o
}

// gap: records behind the committed offset are gone from the log, unread.
func (p *PartitionOffsets) gap() bool { return p.Committed >= 0 && p.Committed < p.Start }

// Resolution is one way on for stopped partitions of a topic.
type Resolution struct {
	Topic string
	// Partitions are those named; nil: every one with inserts under way, or with
	// a gap. To and a range are about one partition.
	Partitions []int32
	To         int64 // >= 0: go on from this offset
	Gap        bool  // go on where the log starts, behind records that are gone
	Drop       bool  // drop the intent, keep the offset
	Vouch      bool  // the views were recomputed: judge the intent's ranges by the table
	// First and Last name a range to vouch for that no intent lists; Last < 0: none.
	First, Last int64
}

// Plans are what a resolution comes to, one a partition.
type Plans struct {
	Plans []*Plan
	// Idle are the partitions of a resolution for all that have no insert under
	// way: nothing of theirs is changed.
	Idle []int32
}

// Plan is a resolution worked out: what would be committed, and what follows
// from it, in words.
type Plan struct {
	Before      PartitionOffsets `json:"before"`
	Offset      int64            `json:"offset"`
	Intent      *offsets.Intent  `json:"intent,omitempty"`
	Consequence []string         `json:"consequence"`
}

// PlanResolution works a resolution out without changing anything. One
// partition that can't be resolved like this refuses all: each is told.
func PlanResolution(ctx context.Context, cfg *config.Config, r Resolution) (*Plans, error) {
	all, err := ShowOffsets(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return planAll(all, r)
}

func planAll(all *Offsets, r Resolution) (*Plans, error) {
	if len(r.Partitions) != 1 && (r.To >= 0 || r.Last >= 0) {
		return nil, &wiring.Usage{Err: errors.New("--to and --range are about one partition: name it")}
	}
	of := map[int32]PartitionOffsets{}
	named := r.Partitions
	for _, p := range all.Partitions {
		if p.Topic == r.Topic {
			of[p.Partition] = p
			if r.Partitions == nil {
				named = append(named, p.Partition)
			}
		}
	}
	if len(of) == 0 {
		return nil, &wiring.Usage{Err: fmt.Errorf("no route reads topic %s", r.Topic)}
	}
	out := &Plans{}
	var failed []error
	if all.Members > 0 {
		failed = append(failed, fmt.Errorf("group %s has %s: stop the sink first, so that nothing moves while you decide", all.Group, wiring.Plural(all.Members, "live member")))
	}
	for _, n := range named {
		p, known := of[n]
		switch {
		case !known:
			failed = append(failed, &wiring.Usage{Err: fmt.Errorf("no route reads %s/%d", r.Topic, n)})
			continue
		case r.Partitions == nil && p.Unread != nil:
			failed = append(failed, fmt.Errorf("%s/%d: %w", r.Topic, n, p.Unread))
			continue
		case r.Partitions == nil && !r.Gap && sets(p.Intent) == 0, r.Partitions == nil && r.Gap && !p.gap():
			out.Idle = append(out.Idle, n)
			continue
		}
		if p.Unread != nil && !r.Drop {
			failed = append(failed, fmt.Errorf("%s/%d: %w; its inserts would be forgotten without a word: where that is wanted, first --drop-intent, then this", r.Topic, n, p.Unread))
			continue
		}
		one, err := plan(p, r)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s/%d: %w", r.Topic, n, err))
			continue
		}
		out.Plans = append(out.Plans, one)
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	if len(out.Plans) == 0 {
		what := "an insert under way"
		if r.Gap {
			what = "a gap between the committed offset and the start of its log"
		}
		return nil, &wiring.Usage{Err: fmt.Errorf("no partition of %s has %s: there is nothing to resolve", r.Topic, what)}
	}
	return out, nil
}

func plan(p PartitionOffsets, r Resolution) (*Plan, error) {
	out := &Plan{Before: p, Offset: max(p.Committed, p.Start)}
	say := func(format string, args ...any) {
		out.Consequence = append(out.Consequence, fmt.Sprintf(format, args...))
	}
	if r.Gap {
		if !p.gap() {
			return nil, &wiring.Usage{Err: fmt.Errorf("there is no gap to accept: committed is %d, the log is [%d..%d]", p.Committed, p.Start, p.End)}
		}
		r.To = p.Start
	}
	switch {
	case r.To >= 0:
		if r.To < p.Start || r.To > p.End {
			return nil, &wiring.Usage{Err: fmt.Errorf("--to %d lies outside the log [%d..%d]", r.To, p.Start, p.End)}
		}
		out.Offset = r.To
		out.Intent = movedTo(p, r.To)
		switch {
		case p.Committed >= 0 && r.To > p.Committed:
			say("records [%d..%d] are never read by this group: you answer for them; what of them was claimed but not written can be taken over by later duplicates", p.Committed, r.To-1)
		case p.Committed >= 0 && r.To < p.Committed:
			say("records [%d..%d] are read again: rows that are there stay once, in views too, since the group had committed past them; what the store knows as written is not looked up, so that a row which was deleted from the table since stays deleted; claims older than the horizon are looked up in ClickHouse", r.To, p.Committed-1)
		default:
			say("the group starts at %d", r.To)
		}
		if dropped := sets(p.Intent) - sets(out.Intent); dropped > 0 {
			say("what the intent lists before %d is dropped: inserts that were under way are judged row by row by what the table has", r.To)
		}
	case r.Drop:
		if in := p.Intent; in != nil && in.Passed > out.Offset {
			out.Intent = &offsets.Intent{Passed: in.Passed}
		}
		say("the offset stays at %d and the intent is dropped: rows that were under way are judged by what the table has; with views, a partition whose rows are there stops again until you vouch for the views", out.Offset)
	case r.Vouch:
		in := copyIntent(p.Intent)
		if r.Last >= 0 {
			if in == nil {
				in = &offsets.Intent{}
			}
			if r.First > out.Offset && r.First <= r.Last && r.Last < p.End {
				return nil, fmt.Errorf("records [%d..%d] before --range %d-%d are not committed yet: recompute the views for them too, and vouch for all of it: --range %d-%d",
					out.Offset, r.First-1, r.First, r.Last, out.Offset, r.Last)
			}
			if r.First != out.Offset || r.Last < r.First || r.Last >= p.End {
				return nil, &wiring.Usage{Err: fmt.Errorf("--range %d-%d: want a range that starts at the committed offset %d and ends before the log's end %d", r.First, r.Last, out.Offset, p.End)}
			}
			in.Passed = max(in.Passed, r.Last+1)
			say("range %d-%d: what of it the table has counts as done, views included, because you have recomputed them; missing rows are sent", r.First, r.Last)
		}
		if in == nil || in.Empty() {
			return nil, &wiring.Usage{Err: errors.New("there is no intent to vouch for: name the range with --range FIRST-LAST")}
		}
		for i := range in.Entries {
			for j := range in.Entries[i].Tables {
				in.Entries[i].Tables[j].Vouched = true
			}
			say("range %s: rows that the table has count as done, views included, because you have recomputed them; missing rows are sent", in.Entries[i].Range)
		}
		out.Intent = in
	default:
		return nil, &wiring.Usage{Err: errors.New("say what to do: --to OFFSET, --drop-intent or --views-recomputed")}
	}
	return out, nil
}

// copyIntent lets a plan change what it shows as the state before.
func copyIntent(in *offsets.Intent) *offsets.Intent {
	if in == nil {
		return nil
	}
	out := &offsets.Intent{MaxPartitions: in.MaxPartitions, Passed: in.Passed}
	for _, e := range in.Entries {
		e.Tables = append([]offsets.Sent(nil), e.Tables...)
		out.Entries = append(out.Entries, e)
	}
	return out
}

// movedTo is what the intent says of an offset that is moved by hand: the sets
// under way behind it stay listed, and what was committed past before is told.
func movedTo(p PartitionOffsets, to int64) *offsets.Intent {
	in := copyIntent(p.Intent)
	if in == nil {
		in = &offsets.Intent{}
	}
	in.Entries = slices.DeleteFunc(in.Entries, func(e offsets.Entry) bool { return e.Range.First < to })
	if in.Passed = max(in.Passed, p.Committed); in.Passed <= to {
		in.Passed = 0
	}
	if in.Empty() {
		return nil
	}
	return in
}

func sets(in *offsets.Intent) int {
	if in == nil {
		return 0
	}
	return len(in.Entries)
}

// Apply commits the plans, in one request. The group must have no live member.
// What was committed and what wasn't is told a partition.
func Apply(ctx context.Context, cfg *config.Config, plans []*Plan) error {
	cl, _, err := kafka(ctx, cfg)
	if err != nil {
		return err
	}
	defer cl.Close()
	var os kadm.Offsets
	for _, p := range plans {
		meta, err := p.metadata()
		if err != nil {
			return fmt.Errorf("%s/%d: %w", p.Before.Topic, p.Before.Partition, err)
		}
		os.Add(kadm.Offset{Topic: p.Before.Topic, Partition: p.Before.Partition, At: p.Offset, LeaderEpoch: -1, Metadata: meta})
	}
	answers, err := kadm.NewClient(cl).CommitOffsets(ctx, cfg.Kafka.Group, os)
	return committedAll(cfg.Kafka.Group, plans, answers, err)
}

// committedAll names the partitions that were not committed, and how many were.
func committedAll(group string, plans []*Plan, answers kadm.OffsetResponses, failed error) error {
	var problems []error
	for _, p := range plans {
		err := failed
		if err == nil {
			answer, ok := answers.Lookup(p.Before.Topic, p.Before.Partition)
			if err = answer.Err; !ok {
				err = errors.New("the broker's answer leaves this partition out")
			}
		}
		if err != nil {
			problems = append(problems, offsets.Explain(err, offsets.Subject{Doing: fmt.Sprintf("commit %s/%d at %d", p.Before.Topic, p.Before.Partition, p.Offset), Group: group}))
		}
	}
	if done := len(plans) - len(problems); len(problems) > 0 && done > 0 {
		problems = append(problems, fmt.Errorf("%s of %d were committed; the same command again is safe for them", wiring.Plural(done, "partition"), len(plans)))
	}
	return errors.Join(problems...)
}

// metadata is what goes with the offset. The epochs outlive all that an operator
// sets aside: claims were made under them.
func (p *Plan) metadata() (string, error) {
	var in offsets.Intent
	if p.Intent != nil {
		in = *p.Intent
	}
	if in.Epochs = p.Before.epochs; in.Empty() && len(in.Epochs) == 0 {
		return "", nil
	}
	return in.Encode()
}
