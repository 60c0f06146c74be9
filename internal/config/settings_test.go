package config

import (
	"testing"

	"github.com/oncesink/oncesink/pkg/writer"
)

// A setting that an insert pins and the file may give is one that somebody believes to be in force.
func TestASettingThatTheWriterPinsIsTakenFromTheFile(t *testing.T) {
	for _, name := range writer.Pinned() {
		if whyPinned(name) == "" {
			t.Errorf("clickhouse.settings.%s is accepted, and pinned by the writer", name)
		}
	}
	for _, name := range []string{"result_overflow_mode", "timeout_overflow_mode_leaf", "insert_select_deduplicate"} {
		if whyPinned(name) == "" {
			t.Errorf("clickhouse.settings.%s is accepted", name)
		}
	}
	for _, name := range []string{"max_memory_usage", "insert_quorum", "log_comment"} {
		if why := whyPinned(name); why != "" {
			t.Errorf("clickhouse.settings.%s is refused: %s", name, why)
		}
	}
}
