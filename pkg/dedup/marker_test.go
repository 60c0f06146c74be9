package dedup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// dump is everything that a server holds.
func (s *server) dump() map[string]any {
	s.t.Helper()
	all := map[string]any{}
	for _, key := range s.keys("*") {
		all[key] = s.do("dump", key)
	}
	return all
}

func (s *server) keys(pattern string) []string {
	s.t.Helper()
	c := s.client()
	defer func() { _ = c.Close() }()
	var out []string
	for it := c.Scan(s.t.Context(), 0, pattern, 100).Iterator(); it.Next(s.t.Context()); {
		out = append(out, it.Val())
	}
	slices.Sort(out)
	return out
}

// check said fit where the run that followed refused: the keys of the route had changed.
func TestACheckSeesThatTheKeyDefinitionChanged(t *testing.T) {
	srv := startRedis(t)
	srv.do("acl", "setuser", "reader", "on", ">r", "~osink:*", "-@all", "+@read", "+@connection")
	other := func(_ *Config, d *Domain) { d.Table = "others" }
	for _, change := range []func(*Config, *Domain){nil, other} {
		s := openAt(t, srv.Addr, change)
		opened(t, s)
		claim1(t, s)
	}
	before := srv.dump()
	cfg := Config{Addresses: []string{srv.Addr}, Username: "reader", Password: "r"}
	for name, c := range map[string]struct {
		d    Domain
		want bool
	}{
		"the same":    {testDomain, false},
		"other keys":  {with(testDomain, func(d *Domain) { d.Route = "key=tenant,id event_time=at ignore=" }), true},
		"no time":     {with(testDomain, func(d *Domain) { d.Route, d.EventTime = "key=id event_time= ignore=", false }), true},
		"ignored":     {with(testDomain, func(d *Domain) { d.Route += "b" }), true},
		"other group": {with(testDomain, func(d *Domain) { d.Group = "g2" }), false},
		"other UUID":  {with(testDomain, func(d *Domain) { d.TableUUID[0] = 9 }), false},
		"other table": {with(testDomain, func(d *Domain) { d.Table = "new"; d.Route = "key=tenant,id event_time=at ignore=" }), false},
	} {
		list := CheckDomain(t.Context(), cfg, c.d)
		if !c.want {
			if len(list) != 0 {
				t.Errorf("%s: %+v", name, list)
			}
			continue
		}
		if len(list) != 1 || list[0].Severity != SeverityError || !strings.Contains(list[0].Reason, "db.events under another definition") ||
			!strings.Contains(list[0].Cure, "routes.key") || !strings.Contains(list[0].Cure, "xargs -r redis-cli") {
			t.Fatalf("%s: %+v", name, list)
		}
		_, err := Open(t.Context(), Config{Addresses: cfg.Addresses}, c.d, quietHooks(), Events{})
		var route *RouteChanged
		if !errors.As(err, &route) || !strings.Contains(err.Error(), route.Keys) || !strings.Contains(list[0].Cure, "'"+route.Keys+"'") {
			t.Fatalf("%s: the run says %v, the check %+v", name, err, list)
		}
	}
	if after := srv.dump(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the check wrote: %v, before %v", after, before)
	}

	// The pattern takes the domain with all it has, and leaves the other one.
	domain := srv.keys(keyPattern(domainName(testDomain)))
	others := srv.keys(keyPattern(domainName(with(testDomain, func(d *Domain) { d.Table = "others" }))))
	if len(domain) < 2 || len(others) < 2 || len(domain)+len(others) != len(before) {
		t.Fatalf("%d keys of the domain, %d of the other one, %d in all", len(domain), len(others), len(before))
	}
	for _, key := range domain {
		if strings.ContainsAny(key, " '\"\\\n") {
			t.Errorf("xargs can't pass %q on", key)
		}
		srv.do("unlink", key)
	}
	openAt(t, srv.Addr, func(_ *Config, d *Domain) { d.Route = "key=tenant,id event_time=at ignore=" })
	openAt(t, srv.Addr, other)
}

func with(d Domain, change func(*Domain)) Domain {
	change(&d)
	return d
}

func claim1(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.Claim(t.Context(), &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 3, 0)}, new(Reply)))
}

// A client that speaks another protocol than the server got no answer at all, and was told that the server is away.
func TestAnotherProtocolOrDatabaseIsTold(t *testing.T) {
	srv := startRedis(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	for name, c := range map[string]struct {
		cfg           Config
		problem, cure string
	}{
		"TLS to a plain server":   {Config{Addresses: []string{srv.Addr}, TLS: &tls.Config{ServerName: "x"}, ReadTimeout: 300e6, DialTimeout: 300e6}, "speaks without TLS", "remove redis.tls"},
		"a plain client to TLS":   {Config{Addresses: []string{secure.Listener.Addr().String()}, ReadTimeout: 300e6}, "speaks TLS", "set redis.tls"},
		"a database out of range": {Config{Addresses: []string{srv.Addr}, DB: 99}, "no database of the number that redis.db names", "correct redis.db"},
	} {
		list := Check(t.Context(), c.cfg)
		if len(list) != 1 || !strings.Contains(list[0].Reason, c.problem) || !strings.Contains(list[0].Cure, c.cure) || list[0].Unreached {
			t.Errorf("%s: check: %+v", name, list)
		}
		var unfit *Unfit
		if _, err := Open(t.Context(), c.cfg, testDomain, quietHooks(), Events{}); !errors.As(err, &unfit) || !strings.Contains(unfit.Cure, c.cure) {
			t.Errorf("%s: open: %v", name, err)
		}
	}
	// No server at all is none of these.
	list := Check(t.Context(), Config{Addresses: []string{"127.0.0.1:1"}, TLS: &tls.Config{ServerName: "x"}})
	if len(list) != 1 || !list[0].Unreached {
		t.Errorf("nobody there: %+v", list)
	}
}

// Data that is being read from disk is no reason to start a server that runs.
func TestALoadingServerIsWaitedFor(t *testing.T) {
	f := reachFinding(context.Background(), Config{}, redis.Error(loading{}))
	if !f.Unreached || !strings.Contains(f.Cure, "wait") || !strings.Contains(f.Reason, "loading") {
		t.Errorf("%+v", f)
	}
}

type loading struct{}

func (loading) Error() string { return "LOADING Redis is loading the dataset in memory" }
func (loading) RedisError()   {}

// Two hashes that differ told nobody what had been changed.
func TestAChangedDefinitionIsToldByItsParts(t *testing.T) {
	for _, c := range []struct{ marker, ours, want string }{
		{"hash=1 slots=event key=a,b event_time=a ignore=", "hash=1 slots=event key=a event_time=a ignore=", "key was a,b and is a"},
		{"hash=1 slots=event key=a event_time=a ignore=x", "hash=1 slots=arrival key=a event_time= ignore=x,y", "event_time was a and is none, ignore was x and is x,y"},
		{"hash=1 slots=event key=a event_time=a ignore=", "hash=2 slots=event key=a event_time=a ignore=", "hash was 1 and is 2"},
		{"hash=1 slots=event x", "hash=1 slots=event y", "it was (hash=1 slots=event x) and is (hash=1 slots=event y)"},
	} {
		e := &RouteChanged{Table: "db.t", Marker: c.marker, Ours: c.ours, Keys: "osink:{x}:*"}
		if got := e.Problem(); !strings.HasSuffix(got, "another definition: "+c.want) {
			t.Errorf("%q, want %q at its end", got, c.want)
		}
	}
}

// A build that met keys of an older format said "run the newer build", which it was.
func TestAnotherFormatIsToldByItsDirection(t *testing.T) {
	for format, want := range map[string]string{"0": "go on with the build that wrote them", "2": "run a build as new as", "x": "run a build as new as"} {
		var unfit *Unfit
		if err := unknownFormat(format, "db.t"); !errors.As(err, &unfit) || !strings.HasPrefix(unfit.Cure, want) ||
			!strings.Contains(unfit.Problem, "format "+format+",") || !strings.Contains(unfit.Cure, keyPattern("db.t")) {
			t.Errorf("format %s: %v", format, unfit)
		}
	}
}
