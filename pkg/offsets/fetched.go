package offsets

import (
	"context"
	"fmt"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Committed is what a group has committed for one partition.
type Committed struct {
	Offset      int64 // -1: nothing was ever committed, or it expired
	LeaderEpoch int32 // -1: unknown
	Metadata    string
}

func fetchedOffset(topic string, p kmsg.OffsetFetchResponseGroupTopicPartition) (Committed, error) {
	c := Committed{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
	if p.Metadata != nil {
		c.Metadata = *p.Metadata
	}
	if c.Offset < 0 { // kgo starts such a partition at its reset offset
		c = Committed{Offset: -1, LeaderEpoch: -1}
	}
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return Committed{Offset: -1, LeaderEpoch: -1}, Explain(err, Subject{Doing: fmt.Sprintf("read the committed offset of %s/%d", topic, p.Partition), Topic: topic})
	}
	return c, nil
}

// Refetch reads the committed offsets of partitions whose hold was broken (see
// Leases.Assigned), delivers them to their leases, and returns the positions
// for the client's SetOffsets. Partitions without a commit are left out of it:
// their lease tells Offset -1.
func (g *Group) Refetch(ctx context.Context, leases *Leases, broken map[string][]int32) (map[string]map[int32]kgo.EpochOffset, error) {
	resp, err := fetchOffsets(ctx, g.cl, g.group, broken, nil)
	if err != nil {
		return nil, err
	}
	if err := leases.OffsetsFetched(ctx, g.cl, resp); err != nil {
		return nil, err
	}
	positions := map[string]map[int32]kgo.EpochOffset{}
	for i := range resp.Groups {
		for _, t := range resp.Groups[i].Topics {
			for _, p := range t.Partitions {
				c, err := fetchedOffset(t.Topic, p)
				if err != nil {
					return nil, err
				}
				if c.Offset < 0 {
					continue
				}
				if positions[t.Topic] == nil {
					positions[t.Topic] = map[int32]kgo.EpochOffset{}
				}
				positions[t.Topic][p.Partition] = kgo.EpochOffset{Epoch: c.LeaderEpoch, Offset: c.Offset}
			}
		}
	}
	return positions, nil
}

// fetchOffsets reads a group's committed offsets: of those partitions, or of
// all when there are none. Ids may be given for topics; kgo looks up the others.
func fetchOffsets(ctx context.Context, cl *kgo.Client, group string, want map[string][]int32, ids map[string]batcher.TopicID) (*kmsg.OffsetFetchResponse, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	for topic, partitions := range want {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = topic, ids[topic], partitions
		rg.Topics = append(rg.Topics, t)
	}
	req.Groups = append(req.Groups, rg)
	what := Subject{Doing: "read the committed offsets of group " + group, Group: group}
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err == nil && len(resp.Groups) != 1 {
		err = fmt.Errorf("the answer holds %d groups", len(resp.Groups))
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	if err != nil {
		return nil, Explain(err, what)
	}
	return resp, nil
}
