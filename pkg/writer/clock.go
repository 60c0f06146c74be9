package writer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	clockMaxAge  = 30 * time.Second // an offset older than this is measured again
	clockSamples = 3                // the sample with the shortest way there and back counts
)

// clock is the offset of a replica's clock to ours, on the monotonic scale.
type clock struct {
	offset      time.Duration // server minus us, at the middle of the exchange
	uncertainty time.Duration // half of the time there and back
	measured    time.Time
}

// Clock is the present time on a replica's clock. The true value lies within the uncertainty on either side. "" is any replica.
func (s *Server) Clock(ctx context.Context, replica string) (now time.Time, uncertainty time.Duration, err error) {
	if replica == "" {
		err = s.onAny(ctx, func(r *replicaState) error {
			now, uncertainty, err = s.clockOf(ctx, r)
			return err
		})
		return now, uncertainty, err
	}
	r, err := s.byAddress(replica)
	if err != nil {
		return time.Time{}, 0, err
	}
	return s.clockOf(ctx, r)
}

// Now is the earliest present time that any replica's clock may show: a deadline made of it is never later than meant on the replica that a statement goes to.
// A replica that can't be asked is left out when it has never been measured; its statements are refused early rather than accepted late only if its clock is ahead, so
// callers that send to a given replica use Clock.
func (s *Server) Now(ctx context.Context) (time.Time, time.Duration, error) {
	var earliest time.Time
	var uncertainty time.Duration
	var failures []error
	for _, r := range s.replicas {
		now, u, err := s.clockOf(ctx, r)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if low := now.Add(-u); earliest.IsZero() || low.Before(earliest) {
			earliest, uncertainty = low, u
		}
	}
	if earliest.IsZero() {
		return time.Time{}, 0, fmt.Errorf("read the server's clock: %w", errors.Join(failures...))
	}
	return earliest, uncertainty, nil
}

func (s *Server) clockOf(ctx context.Context, r *replicaState) (time.Time, time.Duration, error) {
	r.mu.Lock()
	c := r.clock
	r.mu.Unlock()
	if age := time.Since(c.measured); c.measured.IsZero() || age > clockMaxAge {
		fresh, err := s.measureClock(ctx, r)
		if err != nil {
			return time.Time{}, 0, fmt.Errorf("read the clock of %s: %w", r.addr, err)
		}
		c = fresh
		r.mu.Lock()
		r.clock = c
		r.mu.Unlock()
	}
	// Both clocks may drift by some 100 ppm since the measurement.
	drift := time.Since(c.measured) / 5000
	return time.Now().Add(c.offset), c.uncertainty + drift, nil
}

func (s *Server) measureClock(ctx context.Context, r *replicaState) (clock, error) {
	var best clock
	for range clockSamples {
		sent := time.Now()
		value, err := s.value(ctx, r, "SELECT toString(toUnixTimestamp64Micro(now64(6)))")
		if err != nil {
			return clock{}, err
		}
		way := time.Since(sent)
		server := time.UnixMicro(number(value))
		c := clock{offset: server.Sub(sent.Add(way / 2)), uncertainty: way/2 + time.Microsecond, measured: time.Now()}
		if best.measured.IsZero() || c.uncertainty < best.uncertainty {
			best = c
		}
	}
	return best, nil
}
