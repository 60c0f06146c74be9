package wiring

import (
	"context"
	"sync"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// drain is the work of a run that ends: the offsets of each partition from where the group is to where the log ends now.
type drain struct {
	ends map[string]map[int32]int64 // 0: nothing is there

	mu    sync.Mutex
	from  map[string]map[int32]int64
	at    map[string]map[int32]int64 // committed
	asked time.Time
}

// newDrain asks Kafka for the work.
func newDrain(ctx context.Context, cfg *config.Config, cluster *offsets.Cluster, topics map[string]offsets.Topic) (*drain, error) {
	d := &drain{ends: map[string]map[int32]int64{}, from: map[string]map[int32]int64{}, at: map[string]map[int32]int64{}}
	names := make([]string, 0, len(topics))
	for n := range topics {
		names = append(names, n)
	}
	if len(names) == 0 {
		return d, nil
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
		d.ends[topic], d.from[topic], d.at[topic] = map[int32]int64{}, map[int32]int64{}, map[int32]int64{}
		for p, b := range ps {
			end := b.End(cfg.Kafka.Isolation == "read_committed")
			if end <= b.Start {
				end = 0
			}
			from := b.Start
			if c, known := committed[topic][p]; known {
				from = max(from, c.Offset)
			}
			d.ends[topic][p], d.from[topic][p], d.at[topic][p] = end, from, from
		}
	}
	return d, nil
}

// position takes a report of a partition that is worked on here.
func (d *drain) position(topic string, partition int32, committed int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, known := d.at[topic][partition]; known {
		d.at[topic][partition] = max(at, committed)
	}
}

// amount is how many offsets are settled, of how many.
func (d *drain) amount() (done, total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for topic, ps := range d.ends {
		for p, end := range ps {
			from := d.from[topic][p]
			total += max(end-from, 0)
			done += max(min(d.at[topic][p], end)-from, 0)
		}
	}
	return done, total
}

const (
	showDrainEvery = 100 * time.Millisecond
	// How often Kafka is asked what other members of the group have committed.
	askOthersEvery = 2 * time.Second
)

// show tells how far the drain is until ctx ends.
func (d *drain) show(ctx context.Context, cluster *offsets.Cluster, group string, tell func(done, total int64)) {
	tick := time.NewTicker(showDrainEvery)
	defer tick.Stop()
	for {
		tell(d.amount())
		select {
		case <-tick.C:
		case <-ctx.Done():
			tell(d.amount())
			return
		}
		if now := time.Now(); now.Sub(d.asked) >= askOthersEvery {
			d.asked = now
			if all, err := cluster.CommittedAll(ctx, group); err == nil {
				for topic, ps := range all {
					for p, c := range ps {
						d.position(topic, p, c.Offset)
					}
				}
			}
		}
	}
}
