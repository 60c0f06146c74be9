//go:build chaos

package e2e

import "testing"

func runMixed(t *testing.T, _ *broker, _ *report, _ uint64) { t.Fatal("later") }
