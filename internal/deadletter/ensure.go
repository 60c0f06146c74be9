package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// MissingError is a dead-letter topic that isn't there and couldn't be made.
type MissingError struct {
	Topic      string
	Partitions int
	Err        error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("dead-letter topic %s does not exist and could not be created (%v): create it with %d partitions, or grant CREATE on it (or on the cluster) to the sink's user", e.Topic, e.Err, e.Partitions)
}
func (e *MissingError) Unwrap() error { return e.Err }

// EnsureTopic sees to it that the dead-letter topic exists and may be written.
// A missing one is created with as many partitions as the source topic, the
// source's max.message.bytes where that can be read, and the cluster's default
// replication.
func (p *Producer) EnsureTopic(ctx context.Context, topic, source string) (created bool, err error) {
	if topic == source {
		return false, fmt.Errorf("dead-letter topic %s is also consumed: its letters would come back for ever; name another", topic)
	}
	adm := kadm.NewClient(p.cl)
	found, err := p.writable(ctx, adm, topic)
	if err != nil || found {
		return false, err
	}
	from, err := offsets.NewCluster(p.cl).Topics(ctx, source)
	if err != nil {
		return false, err
	}
	missing := &MissingError{Topic: topic, Partitions: from[source].Partitions}
	resp, err := adm.CreateTopic(ctx, int32(missing.Partitions), -1, p.sizeOf(ctx, adm, source), topic)
	if err == nil {
		err = resp.Err
	}
	switch {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists): // another sink was faster
		created = err == nil
		return created, p.awaitTopic(ctx, adm, topic)
	case errors.As(err, new(*kerr.Error)):
		if resp.ErrMessage != "" {
			err = fmt.Errorf("%w: %s", err, resp.ErrMessage)
		}
		missing.Err = err
		return false, missing
	}
	return false, offsets.Explain(err, offsets.Subject{Doing: "create dead-letter topic " + topic, Topic: topic, Operation: "CREATE"})
}

// writable tells whether the topic is there; an error if it may not be written.
func (p *Producer) writable(ctx context.Context, adm *kadm.Client, topic string) (bool, error) {
	what := offsets.Subject{Doing: "check dead-letter topic " + topic, Topic: topic, Operation: "WRITE"}
	m, err := adm.Metadata(kadm.WithAuthorizedOps(ctx), topic)
	if err != nil {
		return false, offsets.Explain(err, what)
	}
	d, ok := m.Topics[topic]
	switch {
	case !ok, errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return false, nil
	case d.Err != nil:
		return false, offsets.Explain(d.Err, what)
	case len(d.AuthorizedOperations) > 0 && !slices.Contains(d.AuthorizedOperations, kmsg.ACLOperationWrite):
		return true, offsets.Explain(kerr.TopicAuthorizationFailed, what)
	}
	return true, nil
}

// awaitTopic waits until the brokers know a topic that was just created.
func (p *Producer) awaitTopic(ctx context.Context, adm *kadm.Client, topic string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if found, err := p.writable(ctx, adm, topic); found || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("dead-letter topic %s was created, but the brokers don't tell of it yet: %w", topic, context.Cause(ctx))
		}
	}
}

// sizeOf reads what the source topic takes, so that its dead letters fit.
func (p *Producer) sizeOf(ctx context.Context, adm *kadm.Client, source string) map[string]*string {
	configs, err := adm.DescribeTopicConfigs(ctx, source)
	if err != nil {
		return nil // not readable for this user; the default will do, or letters are shortened
	}
	for _, r := range configs {
		for _, c := range r.Configs {
			if c.Key == "max.message.bytes" && c.Value != nil && c.Source == kmsg.ConfigSourceDynamicTopicConfig {
				return map[string]*string{c.Key: c.Value}
			}
		}
	}
	return nil
}
