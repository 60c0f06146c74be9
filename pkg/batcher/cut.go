package batcher

// Limits say when a batch is full or old enough. Zero values do not limit.
type Limits struct {
	MaxRows  int
	MaxBytes int
	MaxAgeMs int64 // since the first record arrived
}

// Stretch lengthens the age so that all partitions of a table together start
// at most perSecond inserts a second by age. Full batches are not held back.
func (l Limits) Stretch(partitions int, perSecond float64) Limits {
	if perSecond <= 0 || partitions <= 0 {
		return l
	}
	if age := int64(float64(partitions) / perSecond * 1000); age > l.MaxAgeMs {
		l.MaxAgeMs = age
	}
	return l
}

// Want is how the machine wants the next batch cut.
type Want struct {
	First int64
	Last  int64 // < 0: free
	Exact bool  // end exactly at Last: an intent lists this range
}

// Takes tells whether a record of this offset may join the batch.
func (w Want) Takes(offset int64) bool { return w.Last < 0 || offset <= w.Last }

// Filling is a batch being put together.
type Filling struct {
	Rows    int
	Bytes   int
	Next    int64 // behind the last record taken (or First, while empty)
	Beyond  bool  // a record behind Want.Last was seen: the range is complete
	SinceMs int64 // when the first record arrived
}

// Decision is what to do with a batch being put together.
type Decision struct {
	Cut    bool
	Full   bool  // takes no more records, whether or not it is cut now
	WakeMs int64 // ask again then; 0: only when something arrives
}

// Decide says whether the batch ends here. flush asks for a cut of whatever is
// there (drain, stop), unless an exact range is incomplete: an intent's range
// is cut as it was or not at all.
func (l Limits) Decide(w Want, f Filling, nowMs int64, flush bool) Decision {
	complete := w.Last >= 0 && (f.Next > w.Last || f.Beyond)
	if w.Exact {
		return Decision{Cut: complete, Full: complete}
	}
	full := complete || l.MaxRows > 0 && f.Rows >= l.MaxRows || l.MaxBytes > 0 && f.Bytes >= l.MaxBytes
	if full {
		return Decision{Cut: true, Full: true}
	}
	if f.Next <= w.First {
		return Decision{}
	}
	due := f.SinceMs + l.MaxAgeMs
	if flush || nowMs >= due {
		return Decision{Cut: true}
	}
	return Decision{WakeMs: due}
}

// Range is the range that a cut covers. Last covers gaps and control records
// up to the end of an exact range, so that the same range is named again.
func (w Want) Range(f Filling) Range {
	r := Range{First: w.First, Last: f.Next - 1}
	if w.Last >= 0 && (w.Exact || f.Beyond) {
		r.Last = w.Last
	}
	return r
}

// Pace bounds the rows of a batch by how long its claim takes: a claim that
// takes longer than the insert deadline allows would be renewed for ever. It
// halves when a claim takes more than a quarter of the deadline and grows
// slowly back.
type Pace struct {
	most, now int
}

// paceLeast is never gone below: a claim of that many keys that takes too long
// is a store in trouble, not a batch too large.
const paceLeast = 500

// NewPace starts at most rows.
func NewPace(most int) Pace { return Pace{most: most, now: most} }

// Rows is the present bound.
func (p Pace) Rows() int { return p.now }

// Took notes a claim of rows that took so long, under that insert deadline.
func (p Pace) Took(rows int, tookMs, deadlineMs int64) Pace {
	switch {
	case tookMs > deadlineMs/4:
		p.now = max(min(p.now, rows)/2, min(paceLeast, p.most))
	case tookMs < deadlineMs/16 && p.now < p.most:
		p.now = min(p.now+p.now/4+1, p.most)
	}
	return p
}
