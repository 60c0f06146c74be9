package writer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Ended lists the ranges of the statements with the stem that the query logs of any replica show to have ended well since `from`. It is the positive evidence that
// rows in the table are in its views too: a log that was truncated shows nothing, and so vouches for nothing.
func (s *Server) Ended(ctx context.Context, stem string, from time.Time) ([]batcher.Range, error) {
	var mu sync.Mutex
	var out []batcher.Range
	err := s.onEvery(func(r *replicaState) error {
		entries, err := s.queryLog(ctx, r, stem, from)
		if err != nil {
			_, err = denied(logState{}, err)
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range entries {
			text, _, _ := strings.Cut(strings.TrimPrefix(e.id, stem), "/")
			if !e.finished {
				continue
			}
			if ended, err := parseRange(text); err == nil {
				out = append(out, ended)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the query logs for %s*: %w", stem, err)
	}
	return out, nil
}
