package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
)

// parentEnv makes this test binary a program that starts an engine and waits to be killed.
const parentEnv = "ONCESINK_TEST_PARENT"

func TestMain(m *testing.M) {
	MaybeRunChild()
	if dir, ok := os.LookupEnv(parentEnv); ok {
		runParent(dir)
	}
	os.Exit(m.Run())
}

func runParent(dir string) {
	s, err := Start(context.Background(), StackOptions{DataDir: dir, Output: os.Stderr})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Engine.PID(), s.Redis.PID())
	select {}
}

func startEngine(t *testing.T, o EngineOptions) *Engine {
	t.Helper()
	e, err := StartEngine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	return e
}

func dial(t *testing.T, addr string, o ch.Options) *ch.Client {
	t.Helper()
	o.Address = addr
	conn, err := ch.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func exec1(t *testing.T, conn *ch.Client, sql string) {
	t.Helper()
	if err := conn.Do(t.Context(), ch.Query{Body: sql}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, conn *ch.Client, sql string) uint64 {
	t.Helper()
	var n proto.ColUInt64
	if err := conn.Do(t.Context(), ch.Query{Body: sql, Result: proto.Results{{Name: "n", Data: &n}}}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n.Row(0)
}

func insert(t *testing.T, conn *ch.Client, token string, rows ...int64) {
	t.Helper()
	col := proto.ColInt64(rows)
	err := conn.Do(t.Context(), ch.Query{
		Body:     "INSERT INTO t (a) VALUES",
		Input:    proto.Input{{Name: "a", Data: &col}},
		Settings: []ch.Setting{{Key: "insert_deduplication_token", Value: token, Important: true}},
	})
	if err != nil {
		t.Fatalf("insert under token %s: %v", token, err)
	}
}

func TestDedupLogSurvivesStopAndKill(t *testing.T) {
	dir := t.TempDir()
	e := startEngine(t, EngineOptions{DataDir: dir})
	conn := dial(t, e.TCPAddr, ch.Options{})
	exec1(t, conn, "CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100")
	insert(t, conn, "token-1", 1, 2, 3)
	_ = conn.Close()
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round, end := range []func(*Engine){
		func(e *Engine) { e.Kill() },
		func(e *Engine) { _ = e.Stop(t.Context()) },
	} {
		e := startEngine(t, EngineOptions{DataDir: dir})
		conn := dial(t, e.TCPAddr, ch.Options{})
		insert(t, conn, "token-1", 1, 2, 3)
		insert(t, conn, "token-2", 4)
		if n := count(t, conn, "SELECT count() AS n FROM t"); n != 4 {
			t.Fatalf("start %d: %d rows, want 4: the dedup log was lost", round+2, n)
		}
		if n := count(t, conn, "SELECT count() AS n FROM system.tables WHERE database = 'default' AND uuid != toUUIDOrZero('')"); n != 1 {
			t.Fatalf("start %d: table t has no UUID in database default", round+2)
		}
		exec1(t, conn, "SYSTEM FLUSH LOGS")
		if n := count(t, conn, "SELECT count() AS n FROM system.part_log WHERE error = 389"); n == 0 {
			t.Fatalf("start %d: part_log tells of no dropped duplicate", round+2)
		}
		if n := count(t, conn, "SELECT count() AS n FROM system.query_log WHERE query_kind = 'Create'"); n == 0 {
			t.Fatalf("start %d: query_log has forgotten the first start", round+2)
		}
		_ = conn.Close()
		end(e)
	}
}

func TestRunningQueryDoesNotDelayTheStop(t *testing.T) {
	e := startEngine(t, EngineOptions{})
	conn := dial(t, e.TCPAddr, ch.Options{})
	watch := dial(t, e.TCPAddr, ch.Options{})
	ended := make(chan error, 1)
	go func() {
		ended <- conn.Do(context.Background(), ch.Query{Body: "SELECT sleepEachRow(0.1) FROM numbers(3000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0"})
	}()
	for count(t, watch, "SELECT count() AS n FROM system.processes WHERE query LIKE 'SELECT sleepEachRow%'") == 0 {
		runtime.Gosched()
	}
	_ = watch.Close()
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A killed query is told so; one that the engine gave up on after 5 s sees its connection end.
	var exc *ch.Exception
	if err := <-ended; !errors.As(err, &exc) || exc.Code != proto.ErrQueryWasCancelled {
		t.Fatalf("the query ended with %v, want code %d", err, proto.ErrQueryWasCancelled)
	}
	if _, err := os.Stat(e.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the temporary folder %s was left behind", e.DataDir)
	}
}

func TestUsersFileLimitsUsers(t *testing.T) {
	users := strings.Replace(DefaultUsersXML, "<profiles><default/></profiles>",
		`<profiles><default/><tight><constraints><insert_deduplicate><readonly/></insert_deduplicate></constraints></tight></profiles>`, 1)
	users = strings.Replace(users, "<users>", `<users><app><password>secret</password><networks><ip>127.0.0.1</ip></networks><profile>tight</profile><quota>default</quota>
		<default_database>default</default_database><grants><query>GRANT SELECT ON default.*</query></grants></app>`, 1)
	e := startEngine(t, EngineOptions{UsersXML: users})
	exec1(t, dial(t, e.TCPAddr, ch.Options{}), "CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")
	app := func() *ch.Client { return dial(t, e.TCPAddr, ch.Options{User: "app", Password: "secret"}) }
	if n := count(t, app(), "SELECT count() AS n FROM t"); n != 0 {
		t.Fatalf("%d rows in an empty table", n)
	}
	for sql, want := range map[string]proto.Error{
		"DROP TABLE t": proto.ErrAccessDenied,
		"SELECT 1 SETTINGS insert_deduplicate = 0": proto.ErrSettingConstraintViolation,
	} {
		var exc *ch.Exception
		if err := app().Do(t.Context(), ch.Query{Body: sql}); !errors.As(err, &exc) || exc.Code != want {
			t.Errorf("%s: %v, want code %d", sql, err, want)
		}
	}
	if _, err := ch.Dial(t.Context(), ch.Options{Address: e.TCPAddr, User: "app", Password: "wrong"}); err == nil {
		t.Error("a wrong password was accepted")
	}
}

func TestTakenPortIsToldAndNotServed(t *testing.T) {
	e := startEngine(t, EngineOptions{})
	port := func(addr string) int {
		t.Helper()
		_, p, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, start := range map[string]func(port int) error{
		"native": func(port int) error { _, err := StartEngine(t.Context(), EngineOptions{TCPPort: port}); return err },
		"http":   func(port int) error { _, err := StartEngine(t.Context(), EngineOptions{HTTPPort: port}); return err },
		"redis":  func(port int) error { _, err := StartRedis(t.Context(), RedisOptions{Port: port}); return err },
		"kafka":  func(port int) error { _, err := StartKafka(t.Context(), KafkaOptions{Port: port}); return err },
	} {
		for _, addr := range []string{e.TCPAddr, e.HTTPAddr} {
			err := start(port(addr))
			if err == nil || !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), strconv.Itoa(port(addr))) {
				t.Errorf("%s on a taken port %s: %v", name, addr, err)
			}
		}
	}
}

func TestMissingLibraryTellsTheCure(t *testing.T) {
	_, err := StartEngine(t.Context(), EngineOptions{Lib: "/no/such/libchdb.so"})
	if err == nil || !strings.Contains(err.Error(), "make setup") || !strings.Contains(err.Error(), "ONCESINK_CHDB_LIB") {
		t.Fatalf("error %v names no cure", err)
	}
}

func TestHTTPServesCurl(t *testing.T) {
	e := startEngine(t, EngineOptions{})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+e.HTTPAddr, strings.NewReader("SELECT currentDatabase(), count() FROM system.databases WHERE name = 'oncesink'"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "default\t1\n" {
		t.Fatalf("got %q, %v", body, err)
	}
}

// Without the death signal and the pipe, engine and Redis would go on as orphans and keep the ports.
func TestKilledParentLeavesNoOrphans(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), parentEnv+"="+filepath.Join(t.TempDir(), "data"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var engine, redis int
	if _, err := fmt.Fscan(out, &engine, &redis); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, pid := range []int{engine, redis} {
		for pid > 0 && syscall.Kill(pid, 0) == nil && !isZombie(pid) {
			if ctx.Err() != nil {
				t.Fatalf("process %d outlived its parent", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// isZombie: in a container whose first process reaps nothing, an ended orphan stays visible.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
