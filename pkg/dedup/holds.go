package dedup

// Holds tells whether every group that o touched has the same epoch in t: what
// was read under t is still true for claims made under o.
func (t Ticket) Holds(o Ticket) bool {
	for g, epoch := range o.epochs {
		if epoch != 0 && t.epochs[g] != epoch {
			return false
		}
	}
	return true
}
