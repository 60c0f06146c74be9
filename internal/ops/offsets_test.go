package ops

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/offsets"
)

func underWay(first, last int64) *offsets.Intent {
	return &offsets.Intent{Entries: []offsets.Entry{{Range: batcher.Range{First: first, Last: last}, Tables: []offsets.Sent{{Rows: int(last - first + 1)}}}}}
}

// group has two partitions with inserts under way, one that is idle and one of another topic.
func group() *Offsets {
	return &Offsets{Group: "g", Partitions: []PartitionOffsets{
		{Topic: "other", Partition: 0, Committed: 5, End: 10, Intent: underWay(5, 6)},
		{Topic: "t", Partition: 0, Committed: 10, End: 100, Intent: underWay(10, 19)},
		{Topic: "t", Partition: 1, Committed: 100, End: 100},
		{Topic: "t", Partition: 3, Committed: 30, End: 100, Intent: underWay(30, 34)},
	}}
}

// Eight partitions that stopped for one cause are one command. It must touch those named and no others, and none when one of them can't be resolved. A group with a live
// member is not moved under it (field case J3).
func TestAResolutionOfSeveralPartitionsTouchesThoseAlone(t *testing.T) {
	for _, c := range []struct {
		name       string
		partitions []int32
		change     func(*Offsets, *Resolution)
		want, idle []int32
		refusal    []string
	}{
		{name: "all", want: []int32{0, 3}, idle: []int32{1}},
		{name: "a list", partitions: []int32{0, 3}, want: []int32{0, 3}},
		{name: "one", partitions: []int32{3}, want: []int32{3}},
		{name: "one of them has nothing under way", partitions: []int32{0, 1, 3}, refusal: []string{"t/1: there is no intent to vouch for"}},
		{name: "two of them aren't there", partitions: []int32{0, 7, 9}, refusal: []string{"t/7", "t/9"}},
		{name: "the sink runs", change: func(o *Offsets, _ *Resolution) { o.Members = 2 }, refusal: []string{"2 live members"}},
		{name: "an intent can't be read", change: func(o *Offsets, _ *Resolution) {
			o.Partitions[2].Unread = errors.New("its CRC is wrong")
		}, refusal: []string{"t/1: its CRC is wrong"}},
		{name: "another topic", change: func(_ *Offsets, r *Resolution) { r.Topic = "x" }, refusal: []string{"no route reads topic x"}},
		{name: "nothing is under way", change: func(o *Offsets, _ *Resolution) {
			for i := range o.Partitions {
				o.Partitions[i].Intent = nil
			}
		}, refusal: []string{"nothing to resolve"}},
		{name: "an offset for several", change: func(_ *Offsets, r *Resolution) { r.Vouch, r.To = false, 50 }, refusal: []string{"one partition"}},
		{name: "a range for several", partitions: []int32{0, 3}, change: func(_ *Offsets, r *Resolution) { r.Last = 50 }, refusal: []string{"one partition"}},
	} {
		all, r := group(), Resolution{Topic: "t", Partitions: c.partitions, Vouch: true, To: -1, Last: -1}
		if c.change != nil {
			c.change(all, &r)
		}
		plans, err := planAll(all, r)
		if len(c.refusal) > 0 {
			for _, want := range c.refusal {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want a refusal with %q", c.name, err, want)
				}
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []int32
		for _, p := range plans.Plans {
			got = append(got, p.Before.Partition)
			if p.Before.Topic != "t" || !p.Intent.Entries[0].Tables[0].Vouched || p.Before.Intent.Entries[0].Tables[0].Vouched {
				t.Errorf("%s: plan %+v", c.name, p)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(plans.Idle, c.idle) {
			t.Errorf("%s: plans for %v, idle %v, want %v and %v", c.name, got, plans.Idle, c.want, c.idle)
		}
	}
}

// A commit may be taken for one partition and refused for another. Who reads "failed" without a name begins again with all of them, or with the wrong one.
func TestACommitThatFailsInPartNamesThePartitions(t *testing.T) {
	var plans []*Plan
	answers := kadm.OffsetResponses{"t": {}}
	for p := range int32(4) {
		plans = append(plans, &Plan{Before: PartitionOffsets{Topic: "t", Partition: p}, Offset: 10})
		answers["t"][p] = kadm.OffsetResponse{}
	}
	if err := committedAll("g", plans, answers, nil); err != nil {
		t.Errorf("all were committed: %v", err)
	}
	answers["t"][2] = kadm.OffsetResponse{Err: kerr.TopicAuthorizationFailed}
	delete(answers["t"], 3)
	err := committedAll("g", plans, answers, nil)
	for _, want := range []string{"commit t/2 at 10", "commit t/3 at 10", "2 partitions of 4 were committed"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v doesn't say %q", err, want)
		}
	}
	if err := committedAll("g", plans, nil, errors.New("cut")); err == nil || strings.Contains(err.Error(), "were committed") || !strings.Contains(err.Error(), "t/0") {
		t.Errorf("none was committed: %v", err)
	}
}

// Only records that are gone may be skipped by accept-gap: a partition whose log is whole, or that lost its tail, is not touched (field case J5).
func TestAGapIsAcceptedOnlyWhereRecordsAreGone(t *testing.T) {
	all := &Offsets{Group: "g", Partitions: []PartitionOffsets{
		{Topic: "t", Partition: 0, Committed: 100, Start: 150, End: 400, Intent: underWay(100, 109)},
		{Topic: "t", Partition: 1, Committed: 150, Start: 150, End: 400},
		{Topic: "t", Partition: 2, Committed: 500, Start: 0, End: 400},
		{Topic: "t", Partition: 3, Committed: -1, Start: 150, End: 400},
		{Topic: "t", Partition: 4, Committed: 0, Start: 1, End: 1},
	}}
	plans, err := planAll(all, Resolution{Topic: "t", Gap: true, To: -1, Last: -1})
	if err != nil || len(plans.Plans) != 2 || !slices.Equal(plans.Idle, []int32{1, 2, 3}) {
		t.Fatalf("all: %+v, %v", plans, err)
	}
	for i, want := range []int64{150, 1} {
		if p := plans.Plans[i]; p.Offset != want || !strings.Contains(strings.Join(p.Consequence, " "), "never read") {
			t.Errorf("plan %+v, want offset %d", p, want)
		}
	}
	for p := range int32(3) {
		if _, err := planAll(all, Resolution{Topic: "t", Partitions: []int32{p + 1}, Gap: true, To: -1, Last: -1}); err == nil || !strings.Contains(err.Error(), "no gap") {
			t.Errorf("partition %d: %v", p+1, err)
		}
	}
	all.Partitions = all.Partitions[1:3]
	if _, err := planAll(all, Resolution{Topic: "t", Gap: true, To: -1, Last: -1}); err == nil || !strings.Contains(err.Error(), "no partition of t has a gap") {
		t.Errorf("none has one: %v", err)
	}
}

// A partition whose earlier batches wait for another one's rows was told to name a range that starts at the committed offset, which its range does not:
// the way on that its log had named seemed wrong.
func TestARangeBehindWhatWaitsIsRefusedWithTheOrder(t *testing.T) {
	p := PartitionOffsets{Topic: "t", Partition: 1, Committed: 0, Start: 0, End: 5051}
	_, err := plan(p, Resolution{Vouch: true, To: -1, First: 400, Last: 599})
	if err == nil || !strings.Contains(err.Error(), "records [0..399] before --range 400-599 are not committed yet") {
		t.Errorf("%v", err)
	}
	p.Committed = 400
	if got, err := plan(p, Resolution{Vouch: true, To: -1, First: 400, Last: 599}); err != nil || got.Intent.Passed != 600 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := plan(p, Resolution{Vouch: true, To: -1, First: 300, Last: 599}); err == nil || !strings.Contains(err.Error(), "starts at the committed offset 400") {
		t.Errorf("%v", err)
	}
}
