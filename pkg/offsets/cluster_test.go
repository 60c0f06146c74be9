package offsets

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// A topic created again, or one of the same name in another cluster, is another
// source (field case C12).
func TestTopicFactsTellOneLifeFromTheNext(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 3)
		c := NewCluster(client(t, addr))
		cluster, err := c.ID(deadline(t))
		if err != nil || cluster == "" {
			t.Fatalf("cluster id %q, %v", cluster, err)
		}
		topics, err := c.Topics(deadline(t), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := topics[name]; got != (Topic{Name: name, ID: id, Partitions: 3, Replicas: 1}) || id == ([16]byte{}) {
			t.Errorf("described as %+v", got)
		}
		if all, err := c.Topics(deadline(t)); err != nil || all[name].ID != id {
			t.Errorf("listed as %+v, %v", all[name], err)
		}
		if got, err := c.NameOf(deadline(t), id); err != nil || got != name {
			t.Errorf("name of the id: %q, %v", got, err)
		}
		if _, err := c.NameOf(deadline(t), [16]byte{0xde, 0xad, 1}); !errors.Is(err, ErrTopicGone) {
			t.Errorf("name of an unknown id: %v", err)
		}
		if _, err := c.Topics(deadline(t), "no-such-topic"); err == nil || !strings.HasPrefix(err.Error(), "describe topic no-such-topic: there is no topic no-such-topic, or ") {
			t.Errorf("a missing topic: %v", err)
		}
		if a, b := EpochTopicID(1, name), EpochTopicID(2, name); a == b || a != EpochTopicID(1, name) {
			t.Error("topic epochs don't tell lives apart")
		}
	})
}

// TestHangingTransactionIsTold: a drain that waited for the high watermark
// would never end (field case C17).
func TestHangingTransactionIsTold(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, _ := topic(t, addr, 1)
		plain := client(t, addr, kgo.DefaultProduceTopic(name))
		send := func(cl *kgo.Client, n int) {
			t.Helper()
			for range n {
				if err := cl.ProduceSync(deadline(t), &kgo.Record{Topic: name, Value: []byte("x")}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(plain, 5)
		txn := client(t, addr, kgo.TransactionalID(testenv.Name(t, "txn")), kgo.TransactionTimeout(10*time.Minute))
		if err := txn.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		send(txn, 1)
		send(plain, 4)
		c := NewCluster(client(t, addr))
		bounds, err := c.Bounds(deadline(t), name)
		if err != nil {
			t.Fatal(err)
		}
		b := bounds[name][0]
		if b != (Bounds{Start: 0, Stable: 5, High: 10}) || b.End(true) != 5 || b.End(false) != 10 {
			t.Errorf("bounds %+v", b)
		}
		open, err := c.OpenTransactions(deadline(t), name, 0)
		if err != nil || len(open) != 1 || open[0].First != 5 {
			t.Errorf("open transactions %+v, %v", open, err)
		}
		if err := txn.EndTransaction(deadline(t), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		for { // the end's marker is written after the answer
			open, err := c.OpenTransactions(deadline(t), name, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(open) == 0 {
				break
			}
		}
		if _, err := c.Bounds(deadline(t), "no-such-topic"); err == nil {
			t.Error("bounds of a missing topic")
		}
	})
}

// TestGroupIsDeadOnlyWhenNobodyIsThere: a take-over hangs on it (F6).
func TestGroupIsDeadOnlyWhenNobodyIsThere(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 1)
		c := NewCluster(client(t, addr))
		group := testenv.Name(t, "group")
		a := join(t, addr, group, name, id)
		a.held(1)
		nobody := testenv.Name(t, "nobody")
		if s, err := c.GroupState(deadline(t), nobody); err != nil || s.Live() || s.State != "Dead" {
			t.Errorf("a group that never was: %+v, %v", s, err)
		}
		if got, err := c.Committed(deadline(t), nobody, id, 0); err != nil || got.Offset != -1 {
			t.Errorf("its commit: %+v, %v", got, err)
		}
		if got, err := c.CommittedAll(deadline(t), nobody); err != nil || len(got) != 0 {
			t.Errorf("its commits: %+v, %v", got, err)
		}
		if s, err := c.GroupState(deadline(t), group); err != nil || !s.Live() || s.Members != 1 || s.Type != "classic" {
			t.Errorf("one member: %+v, %v", s, err)
		}
		if err := a.commit(a.lease(0), 0, 1, ""); err != nil {
			t.Fatal(err)
		}
		a.group.Close()
		a.cl.Close()
		if s, err := c.GroupState(deadline(t), group); err != nil || s.Live() || s.State != "Empty" {
			t.Errorf("all gone: %+v, %v", s, err)
		}
		groups, err := c.Groups(deadline(t))
		if err != nil || len(groups) == 0 {
			t.Errorf("groups %v, %v", groups, err)
		}
	})
	for s, live := range map[GroupState]bool{
		{State: "Stable", Members: 1}: true, {State: "PreparingRebalance"}: true, {State: "CompletingRebalance"}: true,
		{State: "Unknown"}: true, {State: ""}: true, {State: "Empty"}: false, {State: "Dead"}: false, {State: "Empty", Members: 1}: true,
	} {
		if s.Live() != live {
			t.Errorf("%+v: live %v", s, s.Live())
		}
	}
}

// TestFailedQuestionIsNotADeadGroup: of all errors only "not found" says so.
func TestFailedQuestionIsNotADeadGroup(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.ConsumerGroupDescribe, kmsg.DescribeGroups} {
		for _, failure := range []*kerr.Error{kerr.GroupAuthorizationFailed, kerr.UnknownServerError, kerr.InvalidRequest} {
			k := testenv.KFake(t)
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: failure, Count: -1})
			s, err := NewCluster(client(t, k.Addr)).GroupState(deadline(t), "g")
			if err == nil {
				t.Errorf("%s fails with %s: told %+v", key.Name(), failure.Message, s)
			}
			if failure == kerr.GroupAuthorizationFailed && !strings.Contains(err.Error(), "lacks the ACL DESCRIBE on group g") {
				t.Errorf("got %v", err)
			}
		}
	}
}

func TestMetadataLimitIsAssumedAloudWhereItCannotBeRead(t *testing.T) {
	t.Parallel()
	k := testenv.KFake(t)
	if limit, assumed := NewCluster(client(t, k.Addr)).MetadataLimit(deadline(t)); limit != DefaultMetadataLimit || assumed != nil {
		t.Errorf("a server that tells it: %d, %v", limit, assumed)
	}
	silent := testenv.KFake(t, kfake.BrokerConfigs(map[string]string{"offset.metadata.max.bytes": ""}))
	limit, assumed := NewCluster(client(t, silent.Addr)).MetadataLimit(deadline(t))
	if limit != DefaultMetadataLimit || assumed == nil {
		t.Errorf("a server that doesn't: %d, %v", limit, assumed)
	}
	k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	limit, assumed = NewCluster(client(t, k.Addr)).MetadataLimit(deadline(t))
	if limit != DefaultMetadataLimit || assumed == nil || !strings.Contains(assumed.Error(), "lacks the ACL DESCRIBE_CONFIGS on the cluster") {
		t.Errorf("forbidden: %d, %v", limit, assumed)
	}
}

// certificate makes a self-signed one for loopback.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func kfakeOf(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	k, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k.ListenAddrs()[0]
}

// TestWrongDoorIsExplained: each of these looked like "no messages" in the field
// (field cases I2, I3).
func TestWrongDoorIsExplained(t *testing.T) {
	t.Parallel()
	plain := kfakeOf(t)
	secure := kfakeOf(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate(t)}}))
	broker := testenv.SharedKafka(t)
	guarded := kfakeOf(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "sink", "right"))
	refusing, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "sink", "right"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(refusing.Close)
	// The fake server cuts the connection at a wrong password; a broker says so.
	refusing.ControlKey(kmsg.SASLAuthenticate.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		refusing.KeepControl()
		resp := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, addr string
		opts       []kgo.Opt
		want       string
	}{
		{"TLS client, plain port", broker, []kgo.Opt{kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true})}, "does not speak TLS, remove kafka.tls"},
		{"plain client, TLS port", secure, nil, "speaks TLS, set kafka.tls"},
		{"unknown authority", secure, []kgo.Opt{kgo.DialTLSConfig(&tls.Config{})}, "set kafka.tls.ca"},
		{"TLS client, a plain port that keeps silent", plain, []kgo.Opt{kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true})}, "the kind of port"},
		{"wrong password, told", refusing.ListenAddrs()[0], []kgo.Opt{kgo.SASL(scram.Auth{User: "sink", Pass: "wrong"}.AsSha256Mechanism())}, "refuse the credentials"},
		{"wrong password, cut", guarded, []kgo.Opt{kgo.SASL(scram.Auth{User: "sink", Pass: "wrong"}.AsSha256Mechanism())}, "check the credentials"},
		{"a user of another mechanism", guarded, []kgo.Opt{kgo.SASL(scram.Auth{User: "sink", Pass: "right"}.AsSha512Mechanism())}, "kafka.sasl"},
		{"no SASL", guarded, nil, "want SASL: set kafka.sasl"},
		{"nobody listens", nobody, nil, "nobody listens there"},
		{"no such name", "no-such-host.invalid:9092", nil, "can't be resolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(deadline(t), 5*time.Second)
			defer cancel()
			err := NewCluster(client(t, c.addr, append(c.opts, kgo.RetryTimeout(2*time.Second), kgo.RequestRetries(1))...)).Reach(ctx)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant it to say %q", err, c.want)
			}
		})
	}
	if err := NewCluster(client(t, guarded, kgo.SASL(scram.Auth{User: "sink", Pass: "right"}.AsSha256Mechanism()))).Reach(deadline(t)); err != nil {
		t.Errorf("the right door: %v", err)
	}
}

// TestMissingGrantIsNamed goes through the ACLs that a sink needs, one missing
// at a time (field case I3).
func TestMissingGrantIsNamed(t *testing.T) {
	t.Parallel()
	grant := func(resource kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	topicRead := grant(kmsg.ACLResourceTypeTopic, "settlements", kmsg.ACLOperationRead)
	groupRead := grant(kmsg.ACLResourceTypeGroup, "sink", kmsg.ACLOperationRead)
	addr := kfakeOf(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "settlements"), kfake.Superuser("SCRAM-SHA-256", "admin", "admin"),
		kfake.User("SCRAM-SHA-256", "no-topic", "pw", groupRead), kfake.User("SCRAM-SHA-256", "no-group", "pw", topicRead),
		kfake.User("SCRAM-SHA-256", "fine", "pw", topicRead, groupRead))
	as := func(user string) *Cluster {
		return NewCluster(client(t, addr, kgo.SASL(scram.Auth{User: user, Pass: "pw"}.AsSha256Mechanism())))
	}
	_, topicErr := as("no-topic").Topics(deadline(t), "settlements")
	_, boundsErr := as("no-topic").Bounds(deadline(t), "settlements")
	_, groupErr := as("no-group").GroupState(deadline(t), "sink")
	_, commitsErr := as("no-group").CommittedAll(deadline(t), "sink")
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"topic":   {topicErr, "lacks the ACL DESCRIBE on topic settlements"},
		"bounds":  {boundsErr, "ACL DESCRIBE on"},
		"group":   {groupErr, "lacks the ACL DESCRIBE on group sink"},
		"commits": {commitsErr, "lacks the ACL DESCRIBE on group sink"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", what, c.err, c.want)
		}
	}
	if _, err := as("fine").Topics(deadline(t), "settlements"); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
	if _, err := as("fine").CommittedAll(deadline(t), "sink"); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
}

func TestExplainKeepsTheErrorItExplains(t *testing.T) {
	if Explain(nil, Subject{Doing: "x"}) != nil {
		t.Error("no error became one")
	}
	inner := &kadm.AuthError{Err: kerr.GroupAuthorizationFailed}
	once := Explain(inner, Subject{Doing: "join", Group: "g"})
	if !errors.Is(once, kerr.GroupAuthorizationFailed) || Explain(once, Subject{Doing: "run"}).Error() != once.Error() {
		t.Errorf("got %v", once)
	}
	odd := errors.New("odd")
	if got := Explain(odd, Subject{Doing: "look"}); !errors.Is(got, odd) || got.Error() != "look: odd" {
		t.Errorf("got %v", got)
	}
}
