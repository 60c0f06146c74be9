package pipeline

// turns bounds how many large claims are in a store's hands at the same time.
//
// The deadline of a batch runs from the moment its claim leaves, and a store
// answers claims one after another. When a backlog lets all partitions claim a
// full batch at once, the last of them is answered after the deadline has
// passed for most; all are renewed, which takes as long again, and nothing is
// ever sent. Waiting before the claim leaves costs no deadline.
type turns chan struct{}

// newTurns: one claim is answered while the next is being packed; each
// hash-tag group may live on a server of its own.
func newTurns(groups int) turns { return make(turns, groups+1) }

// smallClaim is the number of rows up to which a claim waits for nobody: it is
// answered in a few milliseconds, and freshness matters there.
const smallClaim = 4096

// mayClaim tells whether the batch that is full may be cut now. If not, the
// worker is woken when its turn has come.
func (w *worker) mayClaim() bool {
	if w.hasTurn || w.fill.state.Rows <= smallClaim {
		return true
	}
	if w.inLine {
		return false
	}
	select {
	case w.turns <- struct{}{}:
		w.hasTurn = true
		return true
	default:
	}
	w.inLine = true
	w.effects.Add(1)
	go func() {
		defer w.effects.Done()
		select {
		case w.turns <- struct{}{}:
			w.turn <- struct{}{} // has room for the one
		case <-w.softly:
		case <-w.ctx.Done():
		}
	}()
	return false
}

// passTurn lets the next one claim.
func (w *worker) passTurn() {
	if w.hasTurn {
		w.hasTurn = false
		<-w.turns
	}
}

// leaveLine is called at the end, when the goroutine in line is over.
func (w *worker) leaveLine() {
	select {
	case <-w.turn:
		w.hasTurn = true
	default:
	}
	w.passTurn()
}
