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
      <limit>3</limit><offset>1</offset><extremes>1</extremes><session_timezone>Asia/Tokyo</session_timezone>
    </hostile>
    <fixed>
      <async_insert>1</async_insert>
      <constraints><async_insert><const/></async_insert><insert_deduplication_token><const/></insert_deduplication_token></constraints>
    </fixed>
    <reader><readonly>1</readonly></reader>
    <hasty><max_execution_time>7</max_execution_time></hasty>
    <single><max_concurrent_queries_for_user>1</max_concurrent_queries_for_user></single>
  </profiles>
  <quotas><default/></quotas>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><default_database>default</default_database><access_management>1</access_management></default>
    <hostile><password></password><networks><ip>127.0.0.1</ip></networks><profile>hostile</profile><quota>default</quota><default_database>default</default_database></hostile>
    <fixed><password></password><networks><ip>127.0.0.1</ip></networks><profile>fixed</profile><quota>default</quota><default_database>default</default_database></fixed>
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
