package pipeline

import "github.com/twmb/franz-go/pkg/kgo"

// push is called by the poll loop.
func (w *worker) push(records []*kgo.Record) {
	n := 0
	for _, r := range records {
		n += weight(r)
	}
	w.buffered.Add(int64(n))
	w.mu.Lock()
	w.queue = append(w.queue, records...)
	w.mu.Unlock()
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

func (w *worker) dropQueue() {
	w.mu.Lock()
	for _, r := range w.queue {
		r.Recycle()
	}
	w.queue = w.queue[:0]
	w.mu.Unlock()
	for _, r := range w.spare[w.next:] {
		r.Recycle()
	}
	w.spare, w.next = nil, 0
	w.buffered.Store(0)
}

func (w *worker) peek() bool {
	if w.next < len(w.spare) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

func (w *worker) nextRecord() *kgo.Record {
	if w.next == len(w.spare) {
		clear(w.spare) // it must not keep records that were given back
		w.mu.Lock()
		w.spare, w.queue, w.next = w.queue, w.spare[:0], 0
		w.mu.Unlock()
		if len(w.spare) == 0 {
			return nil
		}
	}
	w.next++
	return w.spare[w.next-1]
}

// share is how many bytes one partition may buffer: an even part of half the
// budget. The other half is for what was fetched and not handed over yet, the
// columns, and what the collector has not come to; and records that wait for
// less time are still in the processor's caches when their turn comes.
func (s *Shell) share() int64 {
	s.mu.Lock()
	n := len(s.workers)
	s.mu.Unlock()
	if s.MemoryLimit <= 0 {
		return 1 << 40
	}
	return s.MemoryLimit / 2 / int64(max(n, 1))
}

// load is what a worker buffers of its share. A range that an intent lists has
// to be cut exactly, however large it was made when the share was larger, so
// what it has taken of it so far doesn't count: it would wait for itself.
func (w *worker) load() int64 { return w.buffered.Load() - w.exact.Load() }

// mayPause stops fetching a partition that buffers more than its share; the
// others go on. The poll loop pauses and the worker resumes: under the lock,
// so that the client does what was decided last; and the worker is told to be
// paused before its load is looked at, so that one of the two sees the other.
func (s *Shell) mayPause(w *worker) {
	w.pausing.Lock()
	defer w.pausing.Unlock()
	if w.paused.Load() {
		return
	}
	w.paused.Store(true)
	if w.load() <= s.share() {
		w.paused.Store(false)
		return
	}
	s.client.PauseFetchPartitions(map[string][]int32{w.topic: {w.partition}})
}

// mayResume fetches again once half the share is free.
func (s *Shell) mayResume(w *worker) {
	if !w.paused.Load() || w.load() > s.share()/2 {
		return
	}
	w.pausing.Lock()
	defer w.pausing.Unlock()
	if w.paused.Load() {
		w.paused.Store(false)
		s.client.ResumeFetchPartitions(map[string][]int32{w.topic: {w.partition}})
	}
}

// discard gives back a record that no batch takes.
func (w *worker) discard(r *kgo.Record) {
	w.buffered.Add(-int64(weight(r)))
	r.Recycle()
	w.shell.mayResume(w)
}

// weight is what a buffered record counts for.
func weight(r *kgo.Record) int { return len(r.Value) + len(r.Key) + recordOverhead }
