package writer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

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
	// These cut the rows of a SELECT in silence, and the block is read by a SELECT.
	{Key: "limit", Value: "0", Important: true},
	{Key: "offset", Value: "0", Important: true},
	{Key: "read_overflow_mode", Value: "throw", Important: true},
	{Key: "timeout_overflow_mode", Value: "throw", Important: true},
	// Recovery reads the query log: what isn't there must not have run.
	{Key: "log_queries", Value: "1", Important: true},
	{Key: "log_queries_min_type", Value: "QUERY_START", Important: true},
}

// pinnedWhereKnown are sent to servers that have them.
var pinnedWhereKnown = []proto.Setting{
	{Key: "deduplicate_insert", Value: "enable", Important: true},
	// The statement reads its block through input(), so it counts as INSERT SELECT; `disable` in a profile would double a repeat, and the default leaves it to
	// the server's opinion whether the SELECT is stable. This one is, and the token says what is the same.
	{Key: "deduplicate_insert_select", Value: "enable_even_for_bad_queries", Important: true},
	// It would cut the block in pieces, with a token each that depends on the limits.
	{Key: "use_strict_insert_block_limits", Value: "0", Important: true},
	{Key: "additional_result_filter", Value: "", Important: true},
	{Key: "additional_table_filters", Value: "{}", Important: true},
	// Such a view would be passed over, the insert called written, and the view's share lost.
	{Key: "ignore_materialized_views_with_dropped_target_table", Value: "0", Important: true},
	// A view's own SELECT runs inside of the insert. A limit of the profile that it passes must fail it; with "break" or "any" it would leave rows or groups out.
	{Key: "group_by_overflow_mode", Value: "throw", Important: true},
	{Key: "join_overflow_mode", Value: "throw", Important: true},
	{Key: "set_overflow_mode", Value: "throw", Important: true},
	{Key: "distinct_overflow_mode", Value: "throw", Important: true},
	{Key: "sort_overflow_mode", Value: "throw", Important: true},
	{Key: "transfer_overflow_mode", Value: "throw", Important: true},
	{Key: "result_overflow_mode", Value: "throw", Important: true},
	{Key: "read_overflow_mode_leaf", Value: "throw", Important: true},
	{Key: "timeout_overflow_mode_leaf", Value: "throw", Important: true},
	{Key: "partial_result_on_first_cancel", Value: "0", Important: true},
	{Key: "implicit_transaction", Value: "0", Important: true},
	{Key: "use_query_cache", Value: "0", Important: true}, // refused beside other settings of a profile
	{Key: "log_queries_probability", Value: "1", Important: true},
	{Key: "log_queries_min_query_duration_ms", Value: "0", Important: true},
}

// pinnedForJSON are sent with a block that has JSON columns. Their values go as text, and the server would take strings that look like times for times, which it
// writes otherwise, and true beside 1 for a number.
var pinnedForJSON = []proto.Setting{
	{Key: "input_format_try_infer_dates", Value: "0", Important: true},
	{Key: "input_format_try_infer_datetimes", Value: "0", Important: true},
	{Key: "input_format_json_try_infer_numbers_from_strings", Value: "0", Important: true},
	{Key: "input_format_json_read_bools_as_numbers", Value: "0", Important: true},
	{Key: "input_format_json_read_bools_as_strings", Value: "0", Important: true},
	{Key: "input_format_json_read_numbers_as_strings", Value: "0", Important: true},
	{Key: "type_json_skip_duplicated_paths", Value: "0", Important: true},
}

// known are the settings of a list that the server has.
func (f *facts) known(list []proto.Setting) (out []proto.Setting) {
	for _, p := range list {
		if _, known := f.settings[p.Key]; known {
			out = append(out, p)
		}
	}
	return out
}

// pinnedForReads keep an answer from being cut, filtered, old or sent in a form that isn't read here: what an answer leaves out counts as absent, and is written
// again. A server that doesn't know one ignores it.
var pinnedForReads = []proto.Setting{
	{Key: "limit", Value: "0"},
	{Key: "offset", Value: "0"},
	{Key: "read_overflow_mode", Value: "throw"},
	{Key: "result_overflow_mode", Value: "throw"},
	{Key: "timeout_overflow_mode", Value: "throw"},
	{Key: "read_overflow_mode_leaf", Value: "throw"},
	{Key: "timeout_overflow_mode_leaf", Value: "throw"},
	{Key: "transfer_overflow_mode", Value: "throw"},
	{Key: "sort_overflow_mode", Value: "throw"},
	{Key: "join_overflow_mode", Value: "throw"},
	{Key: "set_overflow_mode", Value: "throw"},
	{Key: "distinct_overflow_mode", Value: "throw"},
	{Key: "group_by_overflow_mode", Value: "throw"},
	{Key: "additional_result_filter", Value: ""},
	{Key: "additional_table_filters", Value: "{}"},
	{Key: "implicit_transaction", Value: "0"},
	{Key: "discard_query_data", Value: "0"},
	{Key: "partial_result_on_first_cancel", Value: "0"},
	{Key: "empty_result_for_aggregation_by_empty_set", Value: "0"},
	{Key: "skip_unavailable_shards", Value: "0"},   // a replica that can't be asked may run an insert
	{Key: "use_query_cache", Value: "0"},           // what was absent a minute ago may be there now
	{Key: "ignore_cold_parts_seconds", Value: "0"}, // the newest parts are the ones in question
	{Key: "apply_deleted_mask", Value: "1"},        // what was deleted is not there
	{Key: "extremes", Value: "0"},
	{Key: "low_cardinality_allow_in_native_format", Value: "0"},
}

// pinnedForSelects are the same where columns are decoded as what they are.
var pinnedForSelects = append(slices.Clone(pinnedForReads[:len(pinnedForReads)-1]), proto.Setting{Key: "low_cardinality_allow_in_native_format", Value: "1"},
	proto.Setting{Key: "output_format_native_write_json_as_string", Value: "1"})

// receiveTimeout is how long the server waits for the rest of a block whose client fell silent: a host that lost its power, a network that holds packets back.
// Until then the insert runs, and whoever has the partition next waits for it: five minutes by default. We have given up after insert_timeout.
const receiveTimeout = "receive_timeout"

// notForUsers can't be set by the user either: the sink gives them with each statement.
var notForUsers = []string{"insert_deduplication_token"}

func pinnedSetting(name string) bool {
	return slices.Contains(Pinned(), name)
}

// Pinned are the names of the settings that an insert has whatever the user's profile says. They can't be configured.
func Pinned() []string {
	var names []string
	for _, list := range [][]proto.Setting{pinned, pinnedWhereKnown} {
		for _, p := range list {
			names = append(names, p.Key)
		}
	}
	return append(names, notForUsers...)
}

// insertSettings are the user's own, those that the protocol pins over them, and the token.
func (s *Server) insertSettings(f *facts, st *Statement, body string) []proto.Setting {
	out := make([]proto.Setting, 0, len(pinned)+len(pinnedWhereKnown)+len(s.cfg.Settings)+len(st.Settings)+2)
	for _, list := range []map[string]string{s.cfg.Settings, st.Settings} {
		for _, name := range sortedNames(list) {
			if !pinnedSetting(name) {
				out = append(out, proto.Setting{Key: name, Value: list[name], Important: true})
			}
		}
	}
	if _, own := s.cfg.Settings[receiveTimeout]; !own {
		out = append(out, proto.Setting{Key: receiveTimeout, Value: strconv.Itoa(max(1, int(s.cfg.InsertTimeout.Seconds()))), Important: true})
	}
	out = append(out, pinned...)
	out = append(out, f.known(pinnedWhereKnown)...)
	types := typesOf(st.Input)
	out = append(out, f.naming(types)...)
	if strings.Contains(types, "JSON") {
		out = append(out, f.known(pinnedForJSON)...)
	}
	if len(body) > 200_000 { // wide tables: the server's limit for a statement's text is 256 KiB
		out = append(out, proto.Setting{Key: "max_query_size", Value: "16777216", Important: true})
	}
	return append(out, proto.Setting{Key: "insert_deduplication_token", Value: st.Token, Important: true})
}

// settingsOfInterest are the names that factsOf asks for.
func settingsOfInterest() []string {
	names := append([]string{"max_partitions_per_insert_block", "max_execution_time", "insert_quorum", "readonly"}, Pinned()...)
	for _, p := range pinnedForJSON {
		names = append(names, p.Key)
	}
	for _, g := range guardedTypes {
		names = append(names, g.setting)
	}
	return names
}
