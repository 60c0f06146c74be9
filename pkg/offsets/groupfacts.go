package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GroupState is what the coordinator knows of a consumer group.
type GroupState struct {
	State   string // Stable, Empty, Dead, PreparingRebalance, …; Dead also where there is no such group
	Type    string // classic, or consumer (KIP-848)
	Members int
}

// Live tells whether somebody may work for the group: it has members, or is in
// a state between having none and having some.
func (s GroupState) Live() bool {
	return s.Members > 0 || s.State != "Empty" && s.State != "Dead"
}

// GroupState describes a group of either protocol. It takes DESCRIBE on the
// group. An error is never "no live member": take-overs (F6) hang on it.
func (c *Cluster) GroupState(ctx context.Context, group string) (GroupState, error) {
	// Each protocol's request answers "not found" for a group of the other, and
	// a group may change from one to the other between the two requests.
	state, found, err := c.modernGroup(ctx, group)
	if err != nil || found {
		return state, err
	}
	state, found, err = c.classicGroup(ctx, group)
	if err != nil || found {
		return state, err
	}
	state, found, err = c.modernGroup(ctx, group)
	if err != nil || found {
		return state, err
	}
	return GroupState{State: "Dead", Type: "classic"}, nil
}

func (c *Cluster) modernGroup(ctx context.Context, group string) (GroupState, bool, error) {
	described, err := c.adm.DescribeConsumerGroups(ctx, group)
	d, ok := described[group]
	if err == nil && ok {
		err = d.Err
	}
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return GroupState{}, false, nil
	case err == nil && ok:
		return GroupState{State: d.State, Type: "consumer", Members: len(d.Members)}, true, nil
	case err == nil:
		err = errors.New("the answer leaves it out")
	}
	// Brokers that don't know the request have no such groups.
	if versions, verr := c.adm.ApiVersions(ctx); verr == nil && !knowsModern(versions) {
		return GroupState{}, false, nil
	}
	return GroupState{}, false, Explain(err, describing(group))
}

func knowsModern(versions kadm.BrokersApiVersions) bool {
	if len(versions) == 0 {
		return true
	}
	for _, v := range versions {
		if v.Err != nil {
			return true // not known: then the error stands
		}
		if _, ok := v.KeyMaxVersion(kmsg.ConsumerGroupDescribe.Int16()); ok {
			return true
		}
	}
	return false
}

func (c *Cluster) classicGroup(ctx context.Context, group string) (GroupState, bool, error) {
	described, err := c.adm.DescribeGroups(ctx, group)
	d, ok := described[group]
	if err == nil && ok {
		err = d.Err
	}
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return GroupState{}, false, nil
	case err != nil:
		return GroupState{}, false, Explain(err, describing(group))
	case !ok:
		return GroupState{}, false, fmt.Errorf("%s: the answer leaves it out", describing(group).Doing)
	case d.State == "Dead": // how brokers before 4.0 say that there is none
		return GroupState{}, false, nil
	}
	return GroupState{State: d.State, Type: "classic", Members: len(d.Members)}, true, nil
}

func describing(group string) Subject {
	return Subject{Doing: "describe group " + group, Group: group, Operation: "DESCRIBE"}
}

// Committed reads what any group has committed for one partition of a topic
// id. ErrTopicGone: the topic was deleted, and its offsets with it.
func (c *Cluster) Committed(ctx context.Context, group string, topic batcher.TopicID, partition int32) (Committed, error) {
	name, err := c.NameOf(ctx, topic)
	if err != nil {
		return Committed{}, err
	}
	return c.CommittedOf(ctx, group, name, topic, partition)
}

// CommittedOf is Committed for a topic whose name is known; the id is zero
// where brokers have none.
func (c *Cluster) CommittedOf(ctx context.Context, group, name string, topic batcher.TopicID, partition int32) (Committed, error) {
	resp, err := fetchOffsets(ctx, c.cl, group, map[string][]int32{name: {partition}}, map[string]batcher.TopicID{name: topic})
	if errors.Is(err, kerr.GroupIDNotFound) {
		return Committed{Offset: -1, LeaderEpoch: -1}, nil
	}
	if err != nil {
		return Committed{}, err
	}
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			if p.Partition != partition {
				continue
			}
			if errors.Is(kerr.ErrorForCode(p.ErrorCode), kerr.UnknownTopicID) {
				return Committed{}, fmt.Errorf("read the committed offset of %s/%d of group %s: %w", name, partition, group, ErrTopicGone)
			}
			return fetchedOffset(name, p)
		}
	}
	return Committed{}, fmt.Errorf("read the committed offset of %s/%d of group %s: the answer leaves it out", name, partition, group)
}

// CommittedAll reads everything that a group has committed, by topic name.
func (c *Cluster) CommittedAll(ctx context.Context, group string) (map[string]map[int32]Committed, error) {
	for begun := time.Now(); ; {
		all, err := c.committedAll(ctx, group)
		if err == nil || !kerr.IsRetriable(err) || time.Since(begun) > patience {
			return all, err
		}
		select { // a cluster that has just started has no coordinator yet
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// patience is how long an answer that may change by itself is asked for again.
const patience = 20 * time.Second

func (c *Cluster) committedAll(ctx context.Context, group string) (map[string]map[int32]Committed, error) {
	what := Subject{Doing: "read the committed offsets of group " + group, Group: group, Operation: "DESCRIBE"}
	fetched, err := c.adm.FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil // some brokers answer an unknown group like this
	}
	if err != nil {
		return nil, Explain(err, what)
	}
	all := map[string]map[int32]Committed{}
	err = nil
	fetched.Each(func(o kadm.OffsetResponse) {
		if o.Err != nil && err == nil {
			what.Topic = o.Topic
			err = Explain(o.Err, what)
		}
		if all[o.Topic] == nil {
			all[o.Topic] = map[int32]Committed{}
		}
		all[o.Topic][o.Partition] = Committed{Offset: o.At, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Groups lists the groups whose names the user may see.
func (c *Cluster) Groups(ctx context.Context) ([]string, error) {
	listed, err := c.adm.ListGroups(ctx)
	if err != nil {
		return nil, Explain(err, Subject{Doing: "list groups"})
	}
	return listed.Groups(), nil
}
