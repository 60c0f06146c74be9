package writer

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Running counts the statements whose query id begins with the prefix and that run at this moment on any replica. A replica that can't be asked is an error:
// it may be running one.
func (s *Server) Running(ctx context.Context, queryIDPrefix string) (int, error) {
	total := 0
	var mu sync.Mutex
	err := s.onEvery(func(r *replicaState) error {
		from, err := s.processesOf(ctx, r)
		if err != nil {
			return err
		}
		value, err := s.value(ctx, r, fmt.Sprintf("SELECT toString(count()) FROM %s WHERE startsWith(query_id, %s) AND is_initial_query", from, quoteText(queryIDPrefix)))
		if err != nil {
			return err
		}
		mu.Lock()
		total += int(number(value))
		mu.Unlock()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look for running statements %s*: %w", queryIDPrefix, err)
	}
	return total, nil
}

func (s *Server) processesOf(ctx context.Context, r *replicaState) (string, error) {
	return s.everywhere(ctx, r, "system.processes")
}

// onEvery calls f for all replicas at once and fails when one fails.
func (s *Server) onEvery(f func(*replicaState) error) error {
	failures := make([]error, len(s.replicas))
	var wg sync.WaitGroup
	for i, r := range s.replicas {
		wg.Go(func() { failures[i] = f(r) })
	}
	wg.Wait()
	return errors.Join(failures...)
}
