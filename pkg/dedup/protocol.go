package dedup

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

const probePatience = time.Second

// otherProtocol looks behind an error of the first call: a server that speaks TLS where it shouldn't, or the other way round, says nothing that tells so, and
// the call just ends late.
func otherProtocol(ctx context.Context, cfg Config, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*probePatience) // the call's own time may be up
	defer cancel()
	for _, addr := range cfg.Addresses {
		switch {
		case cfg.TLS != nil && speaksPlainly(ctx, addr):
			return &Unfit{fmt.Sprintf("Redis at %s speaks without TLS, and redis.tls is set", addr), "remove redis.tls, or give the server's TLS port in redis.addresses", err}
		case cfg.TLS == nil && speaksTLS(ctx, addr):
			return &Unfit{fmt.Sprintf("the server at %s speaks TLS, and redis.tls isn't set", addr), "set redis.tls, or give the port without TLS in redis.addresses", err}
		}
	}
	return err
}

// speaksPlainly tells whether a server answers Redis's PING, if only with an error.
func speaksPlainly(ctx context.Context, addr string) bool {
	conn, err := (&net.Dialer{Timeout: probePatience}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(probePatience))
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return false
	}
	var first [1]byte
	_, err = conn.Read(first[:])
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// speaksTLS tells whether a server shakes hands, whoever it is: nothing is said to it.
func speaksTLS(ctx context.Context, addr string) bool {
	d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: probePatience}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // only whether it is TLS
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
