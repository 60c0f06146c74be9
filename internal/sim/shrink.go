package sim

// shrinkTries is how many schedules of a smaller world are tried before it is
// given up.
const shrinkTries = 150

// Shrink looks for a smaller world and a shorter schedule that break the same
// rule: fewer faults, records, partitions, sinks.
func Shrink(p Params, rule string) Params {
	best := p
	length := Run(best, false).Steps
	for changed := true; changed; {
		changed = false
		for _, smaller := range reductions(best) {
			if q, n, ok := breaks(smaller, rule); ok {
				best, length, changed = q, n, true
				break
			}
		}
	}
	for s := range uint64(4 * shrinkTries) {
		q := best
		q.Seed = s
		if r := Run(q, false); r.Violation != nil && r.Violation.Rule == rule && r.Steps < length {
			best, length = q, r.Steps
		}
	}
	return best
}

func breaks(p Params, rule string) (Params, int, bool) {
	for s := range uint64(shrinkTries) {
		q := p
		if s > 0 {
			q.Seed = s
		}
		if s >= shrinkTries/2 {
			q.World = s
		}
		if r := Run(q, false); r.Violation != nil && r.Violation.Rule == rule {
			return q, r.Steps, true
		}
	}
	return p, 0, false
}

func reductions(p Params) []Params {
	var out []Params
	try := func(f func(*Params)) {
		q := p
		f(&q)
		if q != p {
			out = append(out, q)
		}
	}
	for f := range p.Faults {
		if p.Faults[f] > 0 {
			try(func(q *Params) { q.Faults[f] = 0 })
		}
	}
	try(func(q *Params) { q.Aim = Aim{} })
	try(func(q *Params) { q.Replay = false })
	try(func(q *Params) { q.Partitions = max(1, q.Partitions-1) })
	try(func(q *Params) { q.Sinks = max(1, q.Sinks-1) })
	try(func(q *Params) { q.Records = max(1, q.Records/2) })
	try(func(q *Params) { q.Records = max(1, q.Records-1) })
	try(func(q *Params) { q.Keys = max(1, q.Keys/2) })
	try(func(q *Params) { q.Views = max(0, q.Views-1) })
	try(func(q *Params) { q.Split, q.Most, q.MostAfter = 1, 0, 0 })
	try(func(q *Params) { q.MostAfter = q.Most })
	try(func(q *Params) { q.Most, q.MostAfter = 0, 0 })
	try(func(q *Params) { q.Groups = 1 })
	try(func(q *Params) { q.MaxCut = max(1, q.MaxCut/2) })
	try(func(q *Params) { q.Window, q.WindowMs = 1000, 600_000 })
	for _, f := range []func(*Params) *int{
		func(q *Params) *int { return &q.Gaps }, func(q *Params) *int { return &q.Conflicts }, func(q *Params) *int { return &q.Undecoded },
		func(q *Params) *int { return &q.Filtered }, func(q *Params) *int { return &q.Poison }, func(q *Params) *int { return &q.Cold },
	} {
		try(func(q *Params) { *f(q) = 0 })
	}
	for f := range p.Faults {
		if p.Faults[f] > 1 {
			try(func(q *Params) { q.Faults[f]-- })
		}
	}
	return out
}
