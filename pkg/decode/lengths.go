package decode

import (
	"slices"
	"strconv"
	"strings"
)

// arraysOf groups the columns that the server holds to be one Nested: arrays
// whose names begin alike up to the first dot, however they were declared. It
// refuses a whole block for a row in which their lengths differ.
func (d *JSON) arraysOf() (groups [][]int) {
	at := map[string]int{}
	for i, c := range d.cols {
		nested, member, _ := strings.Cut(c.Name, ".")
		if nested == "" || member == "" || c.typ == nil || c.typ.name != "Array" {
			continue
		}
		g, known := at[nested]
		if !known {
			g = len(groups)
			at[nested] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return slices.DeleteFunc(groups, func(g []int) bool { return len(g) < 2 })
}

// lengths compares the arrays of each Nested in the row just decoded.
func (b *Block) lengths() *Reject {
	length := func(col int) int {
		c := b.cols[col].(*arrCol)
		return c.off.end(b.rows+1) - c.off.end(b.rows)
	}
	for _, g := range b.plan.arrays {
		want := length(g[0])
		for _, col := range g[1:] {
			if n := length(col); n != want {
				first, other := &b.plan.cols[g[0]], &b.plan.cols[col]
				return &Reject{Class: ClassBadValue, Field: other.source, Detail: "columns " + strconv.Quote(clip([]byte(first.Name), maxName)) + " and " + strconv.Quote(clip([]byte(other.Name), maxName)) +
					" are of one Nested, and their arrays have " + strconv.Itoa(want) + " and " + strconv.Itoa(n) + " elements"}
			}
		}
	}
	return nil
}
