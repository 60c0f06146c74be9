package config

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// authority signs the certificates of one test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make("authority", nil)
	return a
}

func (a *authority) make(name string, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	a.next++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, DNSNames: []string{name},
	}
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	} else {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// write puts a certificate and its key into two files; the modification time tells rotations apart even on coarse clocks.
func (a *authority) write(base string, cert *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	a.t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, base+".pem"), filepath.Join(a.dir, base+"-key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert.Raw}, keyFile: {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
		at := time.Unix(1_700_000_000+cert.SerialNumber.Int64(), 0)
		if err := os.Chtimes(file, at, at); err != nil {
			a.t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// clientName connects to a server that asks for a certificate and returns the name in it.
func clientName(server, client *tls.Config) (string, error) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	names := make(chan string, 1)
	go func() {
		defer close(names)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if conn.(*tls.Conn).Handshake() == nil {
			names <- conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
		}
	}()
	conn, err := tls.Dial("tcp", l.Addr().String(), client)
	if err != nil {
		return "", err
	}
	_, _ = io.ReadAll(conn)
	return <-names, conn.Close()
}

func TestARotatedClientCertificateIsUsedFromTheNextConnectionOn(t *testing.T) {
	a := newAuthority(t)
	caFile, _ := a.write("ca", a.cert, a.key)
	serverCert, serverKey := a.make("server", a)
	sc, sk := a.write("server", serverCert, serverKey)
	pair, err := tls.LoadX509KeyPair(sc, sk)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	server := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}

	cert, key := a.make("first", a)
	certFile, keyFile := a.write("client", cert, key)
	c := parse(t, strings.Replace(minimal, "group: g", fmt.Sprintf("group: g, tls: {ca: %q, cert: %q, key: %q, server_name: server}", caFile, certFile, keyFile), 1))
	client, err := c.KafkaTLS()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := clientName(server, client); got != want || err != nil {
			t.Errorf("the server saw %q, %v; want %q", got, err, want)
		}
	}
	expect("first")
	cert, key = a.make("second", a)
	a.write("client", cert, key)
	expect("second")
	if err := os.WriteFile(certFile, []byte("half a rotation"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("second") // the last good pair

	client.ServerName = "somebody else"
	if _, err := clientName(server, client); err == nil {
		t.Error("a certificate for another name was believed")
	}
}

func TestFilesOfSecurityThatAreMissingOrWrongAreToldByLine(t *testing.T) {
	a := newAuthority(t)
	certA, keyA := a.make("a", a)
	certFile, _ := a.write("a", certA, keyA)
	certB, keyB := a.make("b", a)
	_, otherKey := a.write("b", certB, keyB)
	noPEM := filepath.Join(a.dir, "none")
	if err := os.WriteFile(noPEM, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := parse(t, fmt.Sprintf(`
kafka: {brokers: [k:9092], group: g, tls: {ca: /nope/ca.pem}, sasl: {mechanism: AWS_MSK_IAM}}
clickhouse: {addresses: [c:9000], tls: {ca: %q}}
redis: {addresses: [r:6379], tls: {cert: %q, key: %q}}
routes: [{topics: [t], table: e, key: [id], dead_letter: d}]
`, noPEM, certFile, otherKey))
	err := c.CheckFiles()
	var invalid *Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != 4 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{
		"sink.yaml:2: kafka.tls.ca: file /nope/ca.pem does not exist",
		"sink.yaml:2: kafka.sasl: AWS_MSK_IAM needs AWS_ACCESS_KEY_ID",
		"sink.yaml:3: clickhouse.tls.ca: file " + noPEM + " has no certificate",
		"sink.yaml:4: redis.tls.cert: " + certFile + " and " + otherKey + " are no pair",
	} {
		if got := strings.Split(err.Error(), "\n")[i]; !strings.HasPrefix(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if err := parse(t, minimal).CheckFiles(); err != nil {
		t.Errorf("nothing to check: %v", err)
	}
}

// The real client logs in at a real (if embedded) broker; the password changes while it runs (field case I4).
func TestEachSASLMechanismLogsInAndARotatedPasswordIsUsed(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "user", "right"))
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			file := filepath.Join(t.TempDir(), "password")
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("wrong")
			c := parse(t, strings.Replace(minimal, "group: g", fmt.Sprintf("group: g, sasl: {mechanism: %s, username: user, password: '${file:%s}'}", mechanism, file), 1))
			m, err := c.KafkaSASL()
			if err != nil {
				t.Fatal(err)
			}
			client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.SASL(m), kgo.RequestRetries(0))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := client.Ping(ctx); err == nil {
				t.Error("a wrong password was good enough")
			}
			write("right\n")
			if err := client.Ping(ctx); err != nil {
				t.Errorf("after rotation: %v", err)
			}
		})
	}
}

// A token lives for minutes; each authentication reads the one of now (field case I4).
func TestATokenIsReadAtEachAuthentication(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	read := func(option string) func() (string, error) {
		c := parse(t, strings.Replace(minimal, "group: g", "group: g, sasl: {mechanism: OAUTHBEARER, "+option+"}", 1))
		return func() (string, error) {
			m, err := c.KafkaSASL()
			if err != nil {
				return "", err
			}
			_, first, err := m.Authenticate(t.Context(), "broker:9092")
			return string(first), err
		}
	}
	if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile, fromValue := read("token_file: "+file), read("token: '${file:"+file+"}'")
	for _, token := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, get := range []func() (string, error){fromFile, fromValue} {
			if got, err := get(); err != nil || !strings.Contains(got, "auth=Bearer "+token+"\x01") {
				t.Errorf("%q, %v; want token %s", got, err, token)
			}
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fromFile(); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty token: %v", err)
	}
}

func TestAWSCredentialsComeFromTheEnvironment(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "k", "AWS_SESSION_TOKEN": "s"}[name]
		return v, ok
	}
	c, err := Parse("f", []byte(strings.Replace(minimal, "group: g", "group: g, sasl: {mechanism: AWS_MSK_IAM}", 1)), env)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.KafkaSASL()
	if err != nil {
		t.Fatal(err)
	}
	host := net.JoinHostPort("b-1.x.kafka.eu-central-1.amazonaws.com", "9098")
	_, first, err := m.Authenticate(t.Context(), host)
	if err != nil || !strings.Contains(string(first), "AKID") {
		t.Errorf("%s, %v", first, err)
	}
}
