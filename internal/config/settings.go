package config

import "strings"

// pinned are the settings of ClickHouse that could double or lose rows, or hide from the sink what happened to them. Why, each in a few words.
var pinned = map[string]string{
	"async_insert":                                       "an insert must be acknowledged when its rows are written",
	"wait_for_async_insert":                              "an insert must be acknowledged when its rows are written",
	"async_insert_deduplicate":                           "async inserts are never used",
	"insert_deduplicate":                                 "a repeated insert must be recognised",
	"deduplicate_insert":                                 "a repeated insert must be recognised",
	"deduplicate_insert_select":                          "a repeated insert must be recognised",
	"insert_select_deduplicate":                          "a repeated insert must be recognised",
	"insert_deduplication_token":                         "every batch has a token of its own",
	"implicit_transaction":                               "a repeated insert must be recognised, and transactions forget tokens",
	"deduplicate_blocks_in_dependent_materialized_views": "a repeated insert must be recognised by views too",
	"update_insert_deduplication_token_in_dependent_materialized_views": "a repeated insert must be recognised by views too",
	"materialized_views_ignore_errors":                                  "a view that fails must fail the insert",
	"ignore_materialized_views_with_dropped_target_table":               "a view whose target is gone must fail the insert, or its share is lost",
	"max_insert_block_size":                                             whyOneBlock,
	"max_insert_block_size_rows":                                        whyOneBlock,
	"max_insert_block_size_bytes":                                       whyOneBlock,
	"min_insert_block_size_rows":                                        whyOneBlock,
	"min_insert_block_size_bytes":                                       whyOneBlock,
	"use_strict_insert_block_limits":                                    whyOneBlock,
	"max_insert_threads":                                                whyOneBlock,
	"limit":                                                             whyNoCut,
	"offset":                                                            whyNoCut,
	"additional_result_filter":                                          whyNoCut,
	"additional_table_filters":                                          whyNoCut,
	"partial_result_on_first_cancel":                                    whyNoCut,
	"discard_query_data":                                                "the sink reads the server's answers",
	"use_query_cache":                                                   "an answer must tell what is there now",
	"log_queries":                                                       whyLog,
	"log_queries_min_type":                                              whyLog,
	"log_queries_probability":                                           whyLog,
	"log_queries_min_query_duration_ms":                                 whyLog,
}

const (
	whyOneBlock = "an insert must stay one block, or its token counts for a part only"
	whyNoCut    = "it would leave out rows of the block, or of what a view makes of it, in silence"
	whyLog      = "what happened to an unclear insert is looked up in the query log"
)

// whyPinned says why a setting can't be given; "" where it can.
func whyPinned(name string) string {
	// A limit that is passed must fail the statement: "break" and "any" go on with a part of the rows, also in the SELECT of a view.
	if strings.HasSuffix(name, "_overflow_mode") || strings.HasSuffix(name, "_overflow_mode_leaf") {
		return whyNoCut
	}
	return pinned[name]
}
