// Package nearmiss finds the word that somebody who mistyped probably meant.
package nearmiss

import "strings"

// Of returns the candidate closest to word, or "" when none is close enough to be worth naming.
// Case, and '-' against '_', count as nothing; otherwise about one slip in three letters is forgiven.
func Of(word string, candidates []string) string {
	best, bestDistance := "", 1<<30
	for _, c := range candidates {
		if d := distance(fold(word), fold(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if bestDistance <= max(1, min(len(word), len(best))/3) {
		return best
	}
	for _, c := range candidates { // "topic" for "topics" is near, "max" for "max_rows" is a beginning
		if len(word) >= 3 && strings.HasPrefix(fold(c), fold(word)) {
			return c
		}
	}
	return ""
}

// Hint is Of as the end of a sentence: `; did you mean "brokers"?`, or nothing.
func Hint(word string, candidates []string) string {
	if near := Of(word, candidates); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// distance counts the letters to insert, drop, change or swap with their neighbour (optimal string alignment) to get from a to b.
func distance(a, b string) int {
	beforeLast, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last = last, row
	}
	return last[len(b)]
}
