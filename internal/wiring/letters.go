package wiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/deadletter"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// letters sends dead letters to the topic of their route.
type letters struct {
	s        *session
	producer *deadletter.Producer
}

// openLetters opens the dead-letter producer and sees to its topics: a missing
// one is created when that is allowed, and is an error otherwise, before
// anything is read.
func (s *session) openLetters(ctx context.Context) (*letters, error) {
	opts, err := KafkaOptions(s.cfg)
	if err != nil {
		return nil, &Usage{err}
	}
	p, err := deadletter.New(opts...)
	if err != nil {
		return nil, err
	}
	s.onClose(p.Close)
	w := newWaiter(s.cfg.Kafka.StartupTimeout, s.log, s.o.Status)
	for topic := range s.topics.all() {
		if err := w.until(ctx, "kafka", func(ctx context.Context) error { return s.ensureLetters(ctx, p, topic) }); err != nil {
			return nil, s.refuse(nil, err)
		}
	}
	return &letters{s: s, producer: p}, nil
}

func (s *session) deadLetterOf(topic string) string {
	for _, r := range s.cfg.RoutesOf(topic) {
		return r.DeadLetter
	}
	return ""
}

// Send returns when every letter is acknowledged. Without a dead-letter topic
// there is nowhere to keep a record, so its partition waits.
func (l *letters) Send(ctx context.Context, out []pipeline.OutLetter) error {
	list := make([]deadletter.Letter, 0, len(out))
	for i := range out {
		o := &out[i]
		topic := l.s.deadLetterOf(o.Topic)
		if topic == "" {
			return fmt.Errorf("record %s/%d@%d can't be written (%s: %s) and the route has no dead_letter topic: set routes[].dead_letter, or mend the table",
				o.Topic, o.Source.Partition, o.Offset, o.Class, o.Detail)
		}
		d := deadletter.Letter{
			Topic: topic, Key: o.Key, Value: o.Value, Reason: o.Class, Detail: o.Detail, From: o.Topic, Source: o.Source, Offset: o.Offset,
			Timestamp: time.UnixMilli(o.TimestampMs), Group: l.s.cfg.Kafka.Group, Version: l.s.o.Version,
		}
		for _, h := range o.Headers {
			d.Headers = append(d.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if o.Owner != nil {
			d.Conflict = &deadletter.Conflict{Owner: o.Owner.Owner, Fingerprint: o.Fingerprint, OwnerFingerprint: o.Owner.Fingerprint}
		}
		list = append(list, d)
	}
	return l.producer.Produce(ctx, list)
}

// LetterReasons are the classes that dead letters are counted by.
func LetterReasons() []string {
	return []string{
		decode.ClassTombstone, decode.ClassSyntax, decode.ClassNotObject, decode.ClassTrailing, decode.ClassTooDeep, decode.ClassDuplicate, decode.ClassUTF8,
		decode.ClassUnknown, decode.ClassMissingKey, decode.ClassMissing, decode.ClassWrongType, decode.ClassNull, decode.ClassOutOfRange, decode.ClassInexact, decode.ClassBadValue,
		decode.ClassAmbiguous, decode.ClassFuture, decode.ClassDepends, decode.ClassDefaultUnset, decode.ClassTooLarge, "conflict", "server_rejected",
	}
}

// lastingLetters: the topic is missing and may not be created.
func lastingLetters(err error) bool {
	var missing *deadletter.MissingError
	return errors.As(err, &missing)
}
