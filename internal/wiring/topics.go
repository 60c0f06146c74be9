package wiring

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/deadletter"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// discoverEvery is how soon topics that a pattern meets, and partitions that a
// topic gained, are found while the sink runs.
const discoverEvery = 30 * time.Second

// topicSet is the topics that are consumed. It grows while the sink runs.
type topicSet struct {
	mu sync.RWMutex
	m  map[string]offsets.Topic
}

func (s *topicSet) set(m map[string]offsets.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m = m
}

func (s *topicSet) add(t offsets.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[t.Name] = t
}

func (s *topicSet) get(name string) (offsets.Topic, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, ok := s.m[name]
	return t, ok
}

func (s *topicSet) all() map[string]offsets.Topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.m)
}

func hasPatterns(cfg *config.Config) bool {
	for i := range cfg.Routes {
		if cfg.Routes[i].TopicPattern != "" {
			return true
		}
	}
	return false
}

// watchTopics has the client consume topics that are created later and that a
// pattern meets, from their start. A topic is known here, and its dead-letter
// topic seen to, before it can be assigned.
func (s *session) watchTopics(ctx context.Context, cl *kgo.Client, p *deadletter.Producer, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := map[string]string{}
	tell := func(about string, err error) {
		if told[about] != err.Error() {
			told[about] = err.Error()
			s.log.Warn("a topic that a pattern may meet is not consumed", "topic", about, "reason", err.Error())
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := Topics(ctx, s.cfg, s.cluster)
		if err != nil {
			if ctx.Err() == nil {
				tell("*", err)
			}
			continue
		}
		for name, t := range now {
			if _, known := s.topics.get(name); known {
				continue
			}
			if err := s.welcome(ctx, p, name); err != nil {
				if ctx.Err() == nil {
					tell(name, err)
				}
				continue
			}
			s.topics.add(t)
			s.log.Info("a pattern meets a new topic", "topic", name, "partitions", t.Partitions)
			cl.AddConsumeTopics(name)
		}
	}
}

// welcome sees to it that a new topic can be consumed.
func (s *session) welcome(ctx context.Context, p *deadletter.Producer, topic string) error {
	if _, err := s.targetOf(topic); err != nil {
		return err
	}
	return s.ensureLetters(ctx, p, topic)
}

// ensureLetters sees to the dead-letter topic of a topic's route.
func (s *session) ensureLetters(ctx context.Context, p *deadletter.Producer, topic string) error {
	dlq := s.deadLetterOf(topic)
	if dlq == "" {
		return nil
	}
	created, err := p.EnsureTopic(ctx, dlq, topic)
	if created {
		s.log.Info("created the dead-letter topic", "topic", dlq)
	}
	return err
}
