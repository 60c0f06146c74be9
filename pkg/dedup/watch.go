package dedup

import (
	"context"
	"time"
)

// Watch asks the store again and again until ctx ends. Claims are refused for D
// where a store is met that has none of the present ones, and a sink that asks
// more often knows the epoch there before any claim is made under it: it can't
// miss that store, and take the one before for the present one when that comes
// back. What keeps an answer away is told by who needs one.
func (s *Store) Watch(ctx context.Context) {
	tick := time.NewTicker(max(s.domain.InsertDeadline/4, 50*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asking, cancel := context.WithTimeout(ctx, s.domain.InsertDeadline)
		_, _ = s.Epochs(asking)
		cancel()
	}
}
