//go:build !chaos

package e2e

// wholeUpgrade: the quick half of the tests of updates and changed routes runs with the others, all of it with the chaos suite.
const wholeUpgrade = false
