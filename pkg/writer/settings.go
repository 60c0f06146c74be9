package writer

import "github.com/ClickHouse/ch-go/proto"

// pinned are the settings of every insert, whatever the user's profile says. They are flagged important, so that a server that doesn't know one says so and doesn't ignore it.
var pinned = []proto.Setting{
	// A queued insert is acknowledged under another query id, in another block, perhaps before it is written.
	{Key: "async_insert", Value: "0", Important: true},
	{Key: "wait_for_async_insert", Value: "1", Important: true},
	{Key: "insert_deduplicate", Value: "1", Important: true},
	// The views' share of a repeated insert is told from the first one by the token too.
	{Key: "deduplicate_blocks_in_dependent_materialized_views", Value: "1", Important: true},
	{Key: "materialized_views_ignore_errors", Value: "0", Important: true},
}

// pinnedWhereKnown are sent to servers that have them.
var pinnedWhereKnown = []proto.Setting{
	{Key: "deduplicate_insert", Value: "enable", Important: true},
}

// notForUsers can't be set by the user either: the sink gives them with each statement.
var notForUsers = []string{"insert_deduplication_token"}

func pinnedSetting(name string) bool {
	for _, list := range [][]proto.Setting{pinned, pinnedWhereKnown} {
		for _, p := range list {
			if p.Key == name {
				return true
			}
		}
	}
	for _, n := range notForUsers {
		if n == name {
			return true
		}
	}
	return false
}
