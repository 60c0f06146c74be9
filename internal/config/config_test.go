package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

const minimal = `
kafka: {brokers: [k:9092], group: g}
clickhouse: {addresses: [c:9000]}
redis: {addresses: [r:6379]}
routes: [{topics: [t], table: e, key: [id], dead_letter: d}]
`

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("sink.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryKnobOfTheFileArrivesInItsField(t *testing.T) {
	c := parse(t, `
kafka:
  brokers: [localhost:9092, "[::1]:9093"]
  group: settlements-sink
  session_timeout: 30s
  rebalance_timeout: 2m
  isolation: read_uncommitted
  start: earliest
  startup_timeout: 1m
  tls: {ca: ca.pem, cert: c.pem, key: k.pem, server_name: kafka, insecure_skip_verify: false}
  sasl: {mechanism: SCRAM-SHA-512, username: u, password: p}
  instance_id: pod-0
  schema_registry: {url: http://r:8081, username: ru, password: rp}
clickhouse:
  addresses: [a:9000, b:9000]
  balanced: false
  database: db
  username: cu
  password: 0042
  tls: {}
  compression: zstd
  insert_deadline: 10s
  insert_timeout: 90s
  settings: {max_memory_usage: 10000000000, log_comment: "x: y"}
redis:
  mode: sentinel
  addresses: [s:26379]
  master: m
  username: ru
  password: "a$$b"
  tls: {insecure_skip_verify: true}
  db: 3
  horizon: 7d
  assume_noeviction: true
  on_outage: wait
routes:
  - topic_pattern: '^settle\..*$'
    table: db2.events
    format: json
    key: [settle_ms, id, rev]
    event_time: settle_ms
    ignore: [create_time]
    unknown_fields: ignore
    missing_fields: zero
    on_conflict: stop
    dead_letter: settle.dlq
    columns: {create_time: {from: $timestamp}, amount: {from: payload.amount}}
batch: {max_rows: 50_000, max_bytes: 1.5MiB, max_age: 250ms, max_inserts_per_second: 5}
memory: {limit: 1GiB}
http: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
`)
	want := &Config{
		Kafka: Kafka{
			Brokers: []string{"localhost:9092", "[::1]:9093"}, Group: "settlements-sink", SessionTimeout: 30 * time.Second, RebalanceTimeout: 2 * time.Minute,
			Isolation: "read_uncommitted", Start: "earliest", StartupTimeout: time.Minute, InstanceID: "pod-0",
			TLS:            &TLS{CA: "ca.pem", Cert: "c.pem", Key: "k.pem", ServerName: "kafka"},
			SASL:           &SASL{Mechanism: "SCRAM-SHA-512", Username: "u", Password: NewSecret("p")},
			SchemaRegistry: SchemaRegistry{URL: "http://r:8081", Username: "ru", Password: NewSecret("rp")},
		},
		ClickHouse: ClickHouse{
			Addresses: []string{"a:9000", "b:9000"}, Database: "db", Username: "cu", Password: NewSecret("0042"), TLS: &TLS{}, Compression: "zstd",
			InsertDeadline: 10 * time.Second, InsertTimeout: 90 * time.Second, Settings: map[string]string{"max_memory_usage": "10000000000", "log_comment": "x: y"},
		},
		Redis: Redis{
			Mode: "sentinel", Addresses: []string{"s:26379"}, Master: "m", Username: "ru", Password: NewSecret("a$b"), TLS: &TLS{InsecureSkipVerify: true},
			DB: 3, Horizon: 7 * 24 * time.Hour, AssumeNoEviction: true, OnOutage: "wait",
		},
		Routes: []Route{{
			TopicPattern: `^settle\..*$`, Table: "db2.events", Format: "json", Key: []string{"settle_ms", "id", "rev"}, EventTime: "settle_ms",
			Ignore: []string{"create_time"}, UnknownFields: "ignore", MissingFields: "zero", OnConflict: "stop", DeadLetter: "settle.dlq",
			Columns: map[string]Column{"create_time": {From: "$timestamp"}, "amount": {From: "payload.amount"}},
		}},
		Batch:  Batch{MaxRows: 50_000, MaxBytes: 3 << 19, MaxAge: 250 * time.Millisecond, MaxInsertsPerSecond: 5},
		Memory: Memory{Limit: 1 << 30},
		HTTP:   HTTP{Listen: "127.0.0.1:0"},
		Log:    Log{Level: "debug", Format: "text"},
	}
	c.source, c.file, c.Kafka.SASL.env, c.Routes[0].pattern = source{}, "", nil, nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestAShortFileGetsTheDefaults(t *testing.T) {
	c := parse(t, minimal)
	want := Default()
	want.Kafka.Brokers, want.Kafka.Group = []string{"k:9092"}, "g"
	want.ClickHouse.Addresses, want.Redis.Addresses = []string{"c:9000"}, []string{"r:6379"}
	r := DefaultRoute()
	r.Topics, r.Table, r.Key, r.DeadLetter = []string{"t"}, "e", []string{"id"}, "d"
	want.Routes = []Route{r}
	c.source, c.file = source{}, ""
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

// Every field has an entry, every entry a field, and they agree about the default.
func TestNoKnobIsUndocumentedAndNoDefaultIsToldWrong(t *testing.T) {
	inCode := map[string]string{}
	var order []string
	var walk func(field string, v reflect.Value)
	walk = func(field string, v reflect.Value) {
		leaf := func(value string) {
			inCode[field] = value
			order = append(order, field)
		}
		switch x := v.Interface().(type) {
		case time.Duration:
			leaf(FormatDuration(x))
			return
		case Secret:
			leaf(x.String())
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			leaf("")
			walk(field, reflect.New(v.Type().Elem()).Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if name := v.Type().Field(i).Tag.Get("yaml"); name != "" {
					walk(join(field, name), v.Field(i))
				}
			}
		case reflect.Slice:
			if v.Type().Elem() == routeType {
				walk(field+"[]", reflect.ValueOf(DefaultRoute()))
				return
			}
			leaf("")
		case reflect.Map:
			if elem := v.Type().Elem(); elem.Kind() == reflect.Struct {
				walk(field+".*", reflect.New(elem).Elem())
				return
			}
			leaf("")
		default:
			leaf(fmt.Sprint(v.Interface()))
		}
	}
	walk("", reflect.ValueOf(*Default()))

	inTable := map[string]bool{}
	for _, k := range Knobs {
		if inTable[k.Field] {
			t.Errorf("%s has two entries", k.Field)
		}
		inTable[k.Field] = true
		got, ok := inCode[k.Field]
		if !ok {
			t.Errorf("%s is documented and no field", k.Field)
		} else if asDuration, err := ParseDuration(k.Default); got != k.Default && (err != nil || FormatDuration(asDuration) != got) { // 60s is 1m
			t.Errorf("%s: the table says %q, the code %q", k.Field, k.Default, got)
		}
		if len(k.Doc) < 9 || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s has no sentence that says what it trades", k.Field)
		}
	}
	for _, field := range order {
		if !inTable[field] {
			t.Errorf("%s is a field and not documented", field)
		}
	}
	var out strings.Builder
	if err := WriteKnobs(&out); err != nil {
		t.Fatal(err)
	}
	for _, k := range Knobs {
		if !strings.Contains(out.String(), "  "+k.Field) {
			t.Errorf("%s is not printed", k.Field)
		}
	}
}

func TestExpansion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, want, err string }{
		{"nothing", "plain", "plain", ""},
		{"variable", "${PORT}", "9092", ""},
		{"inside a text", "h:${PORT}/x", "h:9092/x", ""},
		{"two", "${PORT}${PORT}", "90929092", ""},
		{"default of an unset one", "${NOPE:-x y}", "x y", ""},
		{"default of an empty one, as in a shell", "${EMPTY:-x}", "x", ""},
		{"an empty default", "${NOPE:-}", "", ""},
		{"default not taken", "${PORT:-x}", "9092", ""},
		{"empty and set", "${EMPTY}", "", ""},
		{"file without its line feed", "${file:" + file + "}", "from file", ""},
		{"escaped", "$${PORT}", "${PORT}", ""},
		{"escaped dollar before a variable", "$$${PORT}", "$9092", ""},
		{"dollar at the end", "^a$", "^a$", ""},
		{"dollar before a letter", "$timestamp", "$timestamp", ""},
		{"what comes in is not expanded again", "${NESTED}", "${SECRET}", ""},
		{"unset", "${NOPE}", "", "NOPE is not set"},
		{"no end", "${PORT", "", "without its }"},
		{"no name", "${:-x}", "", "names no variable"},
		{"no file", "${file:/nope/x}", "", "/nope/x does not exist"},
		{"a folder", "${file:/}", "", "can't be read"},
	} {
		got, _, err := expand(c.in, testEnv)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: expand(%q) = %q, %v; want %q, %q", c.name, c.in, got, err, c.want, c.err)
		}
	}
}

func TestOneVariableMayHoldSeveralBrokers(t *testing.T) {
	env := func(name string) (string, bool) { return "a:1, b:2", name == "BROKERS" }
	c, err := Parse("f", []byte(strings.Replace(minimal, "[k:9092]", `["${BROKERS}"]`, 1)), env)
	if err != nil || !slices.Equal(c.Kafka.Brokers, []string{"a:1", "b:2"}) {
		t.Errorf("%v, %v", c, err)
	}
}

func TestASecretIsNeverPrinted(t *testing.T) {
	s := NewSecret("hunter2")
	holder := struct{ S Secret }{s}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb, s, holder, &holder)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "s", s, "h", holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "s", s, "h", holder)
	asJSON, err1 := json.Marshal(holder)
	asYAML, err2 := yaml.Marshal(holder)
	fmt.Fprint(&out, string(asJSON), string(asYAML), err1, err2)
	if strings.Contains(out.String(), "hunter") || strings.Contains(out.String(), fmt.Sprintf("%x", "hunter2")) || !strings.Contains(out.String(), "***") {
		t.Error(out.String())
	}
	if got, err := s.Reveal(); got != "hunter2" || err != nil {
		t.Errorf("Reveal = %q, %v", got, err)
	}
}

func TestARotatedSecretIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	c := parse(t, strings.Replace(minimal, "[c:9000]", "[c:9000], password: 'x-${file:"+file+"}'", 1))
	if got, err := c.ClickHouse.Password.Reveal(); got != "x-one" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	write("two\n")
	if got, err := c.ClickHouse.Password.Reveal(); got != "x-two" || err != nil {
		t.Errorf("after rotation %q, %v", got, err)
	}
}

func TestDurationsAndSizesSurviveTheirPrinting(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, time.Second, 90 * time.Second, time.Minute, time.Hour, 25 * time.Hour, 61 * time.Minute, time.Hour + time.Second} {
		if got, err := ParseDuration(FormatDuration(d)); got != d || err != nil {
			t.Errorf("%s printed %s read %s, %v", d, FormatDuration(d), got, err)
		}
	}
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "-5s": -5 * time.Second} {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("%s read %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "d", "1d-2h", "-1d", "5 s", "1w", "99999999d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q read %s", text, got)
		}
	}
	for _, s := range []Size{0, 1, 1023, 1024, 16 << 20, 3 << 30, 1 << 40, 1<<20 + 1} {
		if got, err := ParseSize(s.String()); got != s || err != nil {
			t.Errorf("%d printed %s read %d, %v", int64(s), s, int64(got), err)
		}
	}
	for text, want := range map[string]Size{"1TiB": 1 << 40, "1.5 TiB": 3 << 39, "2TB": 2e12} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("%q read %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "16", "MiB", "1e3MiB", "0x1MiB", "infMiB", "nanB", "-1B", "9999999999GiB", "16mib"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q read %s", text, got)
		}
	}
}

// A pattern that takes the dead letters, or topics of Kafka itself, consumes what it wrote for ever (field case I7).
func TestAPatternNeverMeetsDeadLettersOrKafkasOwnTopics(t *testing.T) {
	c := parse(t, strings.Replace(minimal, "topics: [t]", "topic_pattern: '.*'", 1))
	for topic, want := range map[string]int{"t": 1, "d": 0, "__consumer_offsets": 0, "_x": 1} {
		if got := len(c.RoutesOf(topic)); got != want {
			t.Errorf("%s takes %d routes, want %d", topic, got, want)
		}
	}
	if got := c.DeadLetterTopics(); !slices.Equal(got, []string{"d"}) {
		t.Errorf("dead-letter topics %v", got)
	}
}

func TestAFileThatIsNoneIsToldInOneSentence(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "nope.yaml"): "does not exist", dir: "is a folder", big: "no configuration"} {
		if _, err := Load(path, testEnv); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add("a: &x [*x]\n? b\n: {c:1, d: \"${X}\"}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", []byte(text), testEnv)
		if (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
	})
}
