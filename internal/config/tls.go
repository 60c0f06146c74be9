package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"sync"
	"time"
)

// KafkaTLS builds what the client takes; nil means no encryption. Errors are an *Invalid.
func (c *Config) KafkaTLS() (*tls.Config, error) { return c.buildTLS("kafka.tls", c.Kafka.TLS) }

// ClickHouseTLS is KafkaTLS for ClickHouse.
func (c *Config) ClickHouseTLS() (*tls.Config, error) {
	return c.buildTLS("clickhouse.tls", c.ClickHouse.TLS)
}

// RedisTLS is KafkaTLS for Redis.
func (c *Config) RedisTLS() (*tls.Config, error) { return c.buildTLS("redis.tls", c.Redis.TLS) }

// CheckFiles reads everything that the configuration points to, without asking any server.
func (c *Config) CheckFiles() error {
	_, kafka := c.KafkaTLS()
	_, clickhouse := c.ClickHouseTLS()
	_, redis := c.RedisTLS()
	_, sasl := c.KafkaSASL()
	all := &Invalid{File: c.file}
	for _, err := range []error{kafka, sasl, clickhouse, redis} {
		var invalid *Invalid
		if errors.As(err, &invalid) {
			all.Problems = append(all.Problems, invalid.Problems...)
		}
	}
	if len(all.Problems) > 0 {
		return all
	}
	return nil
}

func (c *Config) buildTLS(field string, t *TLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	p := &problems{source: c.source}
	out := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the user asked for it by that very name
	}
	if t.CA != "" {
		if pem, err := readValue(t.CA); err != nil {
			p.at(field+".ca", "%s", err)
		} else {
			out.RootCAs = x509.NewCertPool()
			if !out.RootCAs.AppendCertsFromPEM([]byte(pem)) {
				p.at(field+".ca", "file %s has no certificate in PEM form", t.CA)
			}
		}
	}
	if t.Cert != "" {
		pair := &rotating{certFile: t.Cert, keyFile: t.Key}
		if _, err := readValue(t.Cert); err != nil {
			p.at(field+".cert", "%s", err)
		} else if _, err := readValue(t.Key); err != nil {
			p.at(field+".key", "%s", err)
		} else if _, err := pair.get(nil); err != nil {
			p.at(field+".cert", "%s and %s are no pair of certificate and key: %s", t.Cert, t.Key, err)
		}
		out.GetClientCertificate = pair.get
	}
	return out, p.err(c.file)
}

// rotating is a client certificate that is read again when one of its files has changed.
type rotating struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate
	stamp   [2]time.Time
}

func (r *rotating) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp := [2]time.Time{modified(r.certFile), modified(r.keyFile)}
	if r.current != nil && stamp == r.stamp {
		return r.current, nil
	}
	pair, err := tls.LoadX509KeyPair(r.certFile, r.keyFile)
	if err != nil {
		// In the middle of a rotation one file is new and the other old. The last good pair is valid for a while yet, and the next connection looks again.
		if r.current != nil {
			return r.current, nil
		}
		return nil, err
	}
	r.current, r.stamp = &pair, stamp
	return r.current, nil
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
