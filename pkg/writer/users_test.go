package writer

import (
	"context"
	"sync"
	"testing"

	"github.com/oncesink/oncesink/internal/embedded"
)

// usersXML has users whose profiles and rights stand in the sink's way, one way each.
const usersXML = `<clickhouse>
  <profiles>
    <default/>
    <hostile>
      <async_insert>1</async_insert><wait_for_async_insert>0</wait_for_async_insert><insert_deduplicate>0</insert_deduplicate>
      <deduplicate_insert>disable</deduplicate_insert><deduplicate_insert_select>disable</deduplicate_insert_select>
      <deduplicate_blocks_in_dependent_materialized_views>0</deduplicate_blocks_in_dependent_materialized_views>
      <materialized_views_ignore_errors>1</materialized_views_ignore_errors>
      <use_strict_insert_block_limits>1</use_strict_insert_block_limits><max_insert_block_size>1000</max_insert_block_size>
      <max_insert_block_size_bytes>10000</max_insert_block_size_bytes><min_insert_block_size_rows>10</min_insert_block_size_rows>
      <min_insert_block_size_bytes>100</min_insert_block_size_bytes><max_insert_threads>8</max_insert_threads><max_block_size>100</max_block_size>
      <max_threads>8</max_threads><parallel_view_processing>1</parallel_view_processing><preferred_block_size_bytes>100</preferred_block_size_bytes>
      <optimize_trivial_insert_select>1</optimize_trivial_insert_select><additional_result_filter>0</additional_result_filter>
      <log_queries>0</log_queries><log_queries_probability>0</log_queries_probability><read_overflow_mode>break</read_overflow_mode>
      <ignore_materialized_views_with_dropped_target_table>1</ignore_materialized_views_with_dropped_target_table>
      <partial_result_on_first_cancel>1</partial_result_on_first_cancel><insert_select_deduplicate>0</insert_select_deduplicate>
      <sort_overflow_mode>break</sort_overflow_mode><join_overflow_mode>break</join_overflow_mode><set_overflow_mode>break</set_overflow_mode>
      <distinct_overflow_mode>break</distinct_overflow_mode><group_by_overflow_mode>any</group_by_overflow_mode><transfer_overflow_mode>break</transfer_overflow_mode>
      <read_overflow_mode_leaf>break</read_overflow_mode_leaf><timeout_overflow_mode_leaf>break</timeout_overflow_mode_leaf><result_overflow_mode>break</result_overflow_mode>
      <min_insert_block_size_rows_for_materialized_views>10</min_insert_block_size_rows_for_materialized_views><min_insert_block_size_bytes_for_materialized_views>100</min_insert_block_size_bytes_for_materialized_views>
      <materialized_views_squash_parallel_inserts>0</materialized_views_squash_parallel_inserts><use_async_executor_for_materialized_views>1</use_async_executor_for_materialized_views>
      <send_table_structure_on_insert_with_inline_data>0</send_table_structure_on_insert_with_inline_data><throw_on_max_partitions_per_insert_block>0</throw_on_max_partitions_per_insert_block>
      <insert_null_as_default>0</insert_null_as_default><input_format_defaults_for_omitted_fields>0</input_format_defaults_for_omitted_fields><input_format_null_as_default>0</input_format_null_as_default>
      <input_format_native_allow_types_conversion>0</input_format_native_allow_types_conversion><optimize_on_insert>0</optimize_on_insert><max_insert_delayed_streams_for_parallel_write>1000</max_insert_delayed_streams_for_parallel_write>
      <discard_query_data>1</discard_query_data><empty_result_for_aggregation_by_empty_set>1</empty_result_for_aggregation_by_empty_set>
      <skip_unavailable_shards>1</skip_unavailable_shards><ignore_cold_parts_seconds>600</ignore_cold_parts_seconds><apply_deleted_mask>0</apply_deleted_mask>
      <limit>3</limit><offset>1</offset><extremes>1</extremes><session_timezone>Asia/Tokyo</session_timezone>
    </hostile>
    <fixed>
      <async_insert>1</async_insert>
      <constraints><async_insert><const/></async_insert><insert_deduplication_token><const/></insert_deduplication_token></constraints>
    </fixed>
    <narrow><max_rows_to_group_by>3</max_rows_to_group_by><group_by_overflow_mode>any</group_by_overflow_mode></narrow>
    <filtering><additional_table_filters>{'oncesink.filtered_by_profile': 'n != 1'}</additional_table_filters></filtering>
    <caching><use_query_cache>1</use_query_cache><query_cache_system_table_handling>save</query_cache_system_table_handling><query_cache_nondeterministic_function_handling>save</query_cache_nondeterministic_function_handling></caching>
    <reader><readonly>1</readonly></reader>
    <hasty><max_execution_time>7</max_execution_time></hasty>
    <single><max_concurrent_queries_for_user>1</max_concurrent_queries_for_user></single>
  </profiles>
  <quotas><default/></quotas>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><default_database>default</default_database><access_management>1</access_management></default>
    <hostile><password></password><networks><ip>127.0.0.1</ip></networks><profile>hostile</profile><quota>default</quota><default_database>default</default_database></hostile>
    <fixed><password></password><networks><ip>127.0.0.1</ip></networks><profile>fixed</profile><quota>default</quota><default_database>default</default_database></fixed>
    <narrow><password></password><networks><ip>127.0.0.1</ip></networks><profile>narrow</profile><quota>default</quota><default_database>default</default_database></narrow>
    <filtering><password></password><networks><ip>127.0.0.1</ip></networks><profile>filtering</profile><quota>default</quota><default_database>default</default_database></filtering>
    <caching><password></password><networks><ip>127.0.0.1</ip></networks><profile>caching</profile><quota>default</quota><default_database>default</default_database></caching>
    <reader><password></password><networks><ip>127.0.0.1</ip></networks><profile>reader</profile><quota>default</quota><default_database>default</default_database></reader>
    <hasty><password></password><networks><ip>127.0.0.1</ip></networks><profile>hasty</profile><quota>default</quota><default_database>default</default_database></hasty>
    <single><password></password><networks><ip>127.0.0.1</ip></networks><profile>single</profile><quota>default</quota><default_database>default</default_database></single>
    <least><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><default_database>default</default_database>
      <grants><query>GRANT INSERT, SELECT, SHOW COLUMNS ON oncesink.*</query></grants></least>
    <lookers><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><default_database>default</default_database>
      <grants><query>GRANT SHOW TABLES, SHOW COLUMNS ON oncesink.*</query></grants></lookers>
    <filtered><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><default_database>default</default_database>
      <databases><oncesink><policed><filter>n &gt; 5</filter></policed></oncesink></databases></filtered>
  </users>
</clickhouse>`

var sharedUsers struct {
	once   sync.Once
	engine *embedded.Engine
	err    error
}

// as is a Server of one of the users of usersXML.
func as(t testing.TB, user string) *Server {
	t.Helper()
	sharedUsers.once.Do(func() {
		sharedUsers.engine, sharedUsers.err = embedded.StartEngine(context.Background(), embedded.EngineOptions{UsersXML: usersXML})
	})
	if sharedUsers.err != nil {
		t.Fatal(sharedUsers.err)
	}
	return open(t, Config{Addresses: []string{sharedUsers.engine.TCPAddr}, Database: embedded.DefaultDatabase, Username: user})
}
