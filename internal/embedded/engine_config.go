package embedded

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Tables of clickhouse-local's own default database have no UUID, so that one is called overlay and `default` is made by prepareDatabases.
// Logs are flushed often: recovery waits two flush intervals before it believes that something is absent from them.
const engineConfig = `<clickhouse>
  <users_config>%s</users_config>
  <default_database>overlay</default_database>
  <query_log><database>system</database><table>query_log</table><flush_interval_milliseconds>500</flush_interval_milliseconds></query_log>
  <part_log><database>system</database><table>part_log</table><flush_interval_milliseconds>500</flush_interval_milliseconds></part_log>
</clickhouse>
`

// DefaultUsersXML has one user, `default`, without a password and with all rights: a pattern for a users file of your own.
const DefaultUsersXML = `<clickhouse>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota><default_database>default</default_database>
      <access_management>1</access_management><named_collection_control>1</named_collection_control>
    </default>
  </users>
</clickhouse>
`

// ownUser is merged into the users file: the engine's owner needs a way in whatever users the caller sets up.
const ownUser = `<clickhouse>
  <profiles><%[1]s/></profiles>
  <quotas><%[1]s/></quotas>
  <users>
    <%[1]s>
      <password_sha256_hex>%[2]x</password_sha256_hex><networks><ip>127.0.0.1</ip></networks>
      <profile>%[1]s</profile><quota>%[1]s</quota>
      <access_management>1</access_management>
    </%[1]s>
  </users>
</clickhouse>
`

// writeEngineConfig writes the configuration below the data folder, anew at each start, and returns the main file's path.
func writeEngineConfig(dataDir, usersXML, password string) (string, error) {
	dir := filepath.Join(dataDir, "config")
	if usersXML == "" {
		usersXML = DefaultUsersXML
	}
	users := filepath.Join(dir, "users.xml")
	config := filepath.Join(dir, "config.xml")
	if err := os.MkdirAll(filepath.Join(dir, "users.d"), 0o700); err != nil {
		return "", fmt.Errorf("create configuration folder: %w", err)
	}
	for file, content := range map[string]string{
		config: fmt.Sprintf(engineConfig, users),
		users:  usersXML,
		filepath.Join(dir, "users.d", "engine.xml"): fmt.Sprintf(ownUser, engineUser, sha256.Sum256([]byte(password))),
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write configuration: %w", err)
		}
	}
	return config, nil
}
