package writer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
)

const (
	clientName  = "oncesink/exactly-once-into-ClickHouse" // longer than an HTTP method may be: an HTTP port answers at once and is recognised
	clientMajor = 1
	clientMinor = 0

	dialTimeout      = 5 * time.Second
	handshakeTimeout = 90 * time.Second // a sleeping cloud server takes a minute to answer
)

// DialError says why a server can't be talked to. Where Cure is set, waiting doesn't help.
type DialError struct {
	Address string
	Reason  string
	Cure    string
	Err     error
}

func (e *DialError) Error() string {
	text := "clickhouse " + e.Address + ": " + e.Reason
	if e.Cure != "" {
		text += ": " + e.Cure
	}
	return text
}

func (e *DialError) Unwrap() error { return e.Err }

// dial connects and shakes hands.
func dial(ctx context.Context, cfg *Config, addr string) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := net.Dialer{KeepAlive: 30 * time.Second}
	plain, err := dialer.DialContext(dialCtx, "tcp", addr)
	if err != nil {
		return nil, &DialError{Address: addr, Reason: "can't connect: " + dialReason(err), Err: err}
	}
	first := &firstBytes{Conn: plain}
	raw := net.Conn(first)
	if cfg.TLS != nil {
		conf := cfg.TLS.Clone()
		if conf.ServerName == "" && !conf.InsecureSkipVerify {
			conf.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Client(first, conf)
		if err := secure.HandshakeContext(dialCtx); err != nil {
			_ = plain.Close()
			return nil, tlsError(addr, err, first.seen)
		}
		first = &firstBytes{Conn: secure}
		raw = first
	}
	c := &conn{raw: raw, addr: addr, reader: proto.NewReader(raw), silence: cfg.silence}
	c.wire = bufio.NewWriterSize(raw, 32<<10)
	c.out = &frameWriter{to: c.wire}
	c.compression, c.out.frames = compression(cfg.Compression)
	c.columns = proto.NewWriter(c.out, new(proto.Buffer))
	shakeCtx, cancelShake := context.WithTimeout(ctx, handshakeTimeout)
	defer cancelShake()
	deadline, _ := shakeCtx.Deadline()
	_ = raw.SetDeadline(deadline)
	stop := context.AfterFunc(shakeCtx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	err = c.handshake(cfg)
	if !stop() && err == nil {
		err = shakeCtx.Err()
	}
	if err != nil {
		_ = raw.Close()
		if ctxErr := ctx.Err(); ctxErr != nil {
			err = ctxErr
		}
		return nil, handshakeError(addr, cfg, err, first.seen)
	}
	return c, nil
}

func compression(name string) (proto.Compression, *compress.Writer) {
	switch name {
	case "none":
		return proto.CompressionDisabled, nil
	case "zstd":
		return proto.CompressionEnabled, compress.NewWriter(0, compress.ZSTD)
	default:
		return proto.CompressionEnabled, compress.NewWriter(0, compress.LZ4)
	}
}

func (c *conn) handshake(cfg *Config) error {
	proto.ClientHello{
		Name: clientName, Major: clientMajor, Minor: clientMinor, ProtocolVersion: proto.Version,
		Database: cfg.Database, User: cfg.Username, Password: cfg.Password,
	}.Encode(&c.buf)
	if err := c.push(); err != nil {
		return err
	}
	code, err := c.reader.UVarInt()
	if err != nil {
		return err
	}
	switch proto.ServerCode(code) {
	case proto.ServerCodeException:
		return c.exception()
	case proto.ServerCodeHello:
	default:
		return errNotNative
	}
	if err := c.hello.DecodeAware(c.reader, proto.Version); err != nil {
		return err
	}
	c.version = min(proto.Version, c.hello.Revision)
	if proto.FeatureAddendum.In(c.version) {
		c.buf.PutString("") // quota key
		return c.push()
	}
	return nil
}

var errNotNative = errors.New("the answer is not of ClickHouse's native protocol")

// firstBytes keeps the first bytes that came in: they tell what kind of server is there.
type firstBytes struct {
	net.Conn
	seen []byte
}

func (f *firstBytes) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if room := 16 - len(f.seen); room > 0 {
		f.seen = append(f.seen, p[:min(n, room)]...)
	}
	return n, err
}

const nativePorts = "the native protocol is wanted here: port 9000 (with tls: 9440)"

func tlsError(addr string, err error, seen []byte) error {
	var unknown *tls.CertificateVerificationError
	switch {
	case bytes.HasPrefix(seen, []byte("HTTP/")):
		return &DialError{Address: addr, Reason: "this is an HTTP port without TLS", Cure: nativePorts, Err: err}
	case errors.As(err, &unknown):
		return &DialError{Address: addr, Reason: "its certificate is not trusted: " + err.Error(), Cure: "name the authority in clickhouse.tls.ca, or the certificate's host in clickhouse.tls.server_name", Err: err}
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		return &DialError{Address: addr, Reason: "the server doesn't speak TLS on this port", Cure: "take port 9440, or remove clickhouse.tls for the plain port 9000", Err: err}
	}
	return &DialError{Address: addr, Reason: "TLS handshake: " + err.Error(), Err: err}
}

func handshakeError(addr string, cfg *Config, err error, seen []byte) error {
	var ex *Exception
	switch {
	case errors.As(err, &ex) && ex.Code == 81:
		return &DialError{Address: addr, Reason: ex.Message, Cure: "check clickhouse.database, or CREATE DATABASE " + quoteName(cfg.Database), Err: err}
	case errors.As(err, &ex):
		if class, known := codes[ex.Code]; known && class.cause == Misconfigured {
			return &DialError{Address: addr, Reason: ex.Message, Cure: "check clickhouse.username and clickhouse.password", Err: err}
		}
		return &DialError{Address: addr, Reason: ex.Message, Err: err}
	case bytes.HasPrefix(seen, []byte("HTTP/")):
		return &DialError{Address: addr, Reason: "this is an HTTP port", Cure: nativePorts, Err: err}
	case len(seen) > 1 && seen[0] == 0x15 && seen[1] == 3 && cfg.TLS == nil: // a TLS alert
		return &DialError{Address: addr, Reason: "the server speaks TLS on this port", Cure: "set clickhouse.tls, or take the plain port 9000", Err: err}
	case errors.Is(err, errNotNative):
		return &DialError{Address: addr, Reason: err.Error(), Cure: nativePorts, Err: err}
	case (errors.Is(err, io.EOF) || isReset(err)) && len(seen) == 0 && cfg.TLS == nil:
		return &DialError{Address: addr, Reason: "the server closed the connection at once (a port that speaks TLS, or a server about to stop)", Err: err}
	}
	return &DialError{Address: addr, Reason: "handshake: " + err.Error(), Err: err}
}

func dialReason(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Sprintf("the host %s can't be resolved", dns.Name)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer"
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
