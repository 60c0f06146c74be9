//go:build chaos

package e2e

func mixedAttacks() []attack { return nil }
