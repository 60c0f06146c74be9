//go:build chaos

package e2e

func linkSchedules() []schedule  { return nil }
func tableSchedules() []schedule { return nil }
