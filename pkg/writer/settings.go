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
	// One block, one thread, one part a partition: servers have cut and balanced the block of an INSERT SELECT between threads.
	{Key: "max_insert_threads", Value: "1", Important: true},
}

// pinnedWhereKnown are sent to servers that have them.
var pinnedWhereKnown = []proto.Setting{
	{Key: "deduplicate_insert", Value: "enable", Important: true},
	// The statement reads its block through input(), so it counts as INSERT SELECT; `disable` in a profile would double a repeat, and the default leaves it to
	// the server's opinion whether the SELECT is stable. This one is, and the token says what is the same.
	{Key: "deduplicate_insert_select", Value: "enable_even_for_bad_queries", Important: true},
	// It would cut the block in pieces, with a token each that depends on the limits.
	{Key: "use_strict_insert_block_limits", Value: "0", Important: true},
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
