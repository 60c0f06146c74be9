package offsets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Subject is what was being done to Kafka, and with which resources, when an
// error came up.
type Subject struct {
	Doing     string // "read topic settlements"
	Topic     string
	Group     string
	Operation string // the operation on the resource that needs a grant; by default READ
}

// ExplainedError is an error from Kafka with its cure.
type ExplainedError struct {
	Doing, Cure string
	Err         error
}

func (e *ExplainedError) Error() string {
	text := strings.TrimSuffix(e.Err.Error(), ".") + ": " + e.Cure
	if errors.Is(e.Err, kerr.UnknownTopicOrPartition) {
		text = e.Cure // says the same in words
	}
	if e.Doing != "" {
		text = e.Doing + ": " + text
	}
	return text
}
func (e *ExplainedError) Unwrap() error { return e.Err }

// Explain adds what to do to an error of the Kafka client: the ACL that is
// missing, the password, the kind of port. Errors that say nothing of the kind
// come back with only what was being done.
func Explain(err error, s Subject) error {
	if err == nil {
		return nil
	}
	if explained := (*ExplainedError)(nil); errors.As(err, &explained) {
		return err
	}
	if cure := cureOf(err, s); cure != "" {
		return &ExplainedError{Doing: s.Doing, Cure: cure, Err: err}
	}
	if s.Doing == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.Doing, err)
}

func cureOf(err error, s Subject) string {
	operation := s.Operation
	if operation == "" {
		operation = "READ"
	}
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return fmt.Sprintf("the user lacks the ACL %s on group %s", operation, named(s.Group))
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf("the user lacks the ACL %s on topic %s", operation, named(s.Topic))
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		if s.Operation == "" {
			operation = "DESCRIBE"
		}
		return fmt.Sprintf("the user lacks the ACL %s on the cluster", operation)
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return "the user lacks the ACL DESCRIBE on the transactional id"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the brokers refuse the credentials: check kafka.sasl.username, password and mechanism"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "the brokers don't offer this mechanism: set kafka.sasl.mechanism to one of those in the message"
	case errors.Is(err, kerr.UnknownTopicOrPartition) && s.Topic != "":
		return fmt.Sprintf("there is no topic %s, or the user lacks the ACL DESCRIBE on it", s.Topic)
	case errors.Is(err, kerr.OffsetMetadataTooLarge):
		return "raise the brokers' offset.metadata.max.bytes"
	}
	return transportCure(err)
}

func named(resource string) string {
	if resource == "" {
		return "(unnamed)"
	}
	return resource
}

// transportCure knows the faces of a wrong port, protocol or certificate.
func transportCure(err error) string {
	var (
		firstRead *kgo.ErrFirstReadEOF
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		lookup    *net.DNSError
	)
	const plain = "looks like a TLS/plaintext mismatch: this port does not speak TLS, remove kafka.tls or use the TLS port"
	const wantsTLS = "looks like a TLS/plaintext mismatch: this port speaks TLS, set kafka.tls or use the plaintext port"
	text := err.Error()
	switch {
	case errors.As(err, &record):
		return plain
	case strings.Contains(text, "speaking to a tls endpoint"):
		return wantsTLS
	case errors.As(err, &firstRead):
		switch {
		case strings.Contains(text, "SASL"):
			return "looks as if the brokers want SASL: set kafka.sasl, or use a port without it"
		case strings.Contains(text, "requires TLS"):
			return wantsTLS
		}
		return plain
	case errors.As(err, &authority):
		return "the brokers' certificate is from an unknown authority: set kafka.tls.ca"
	case errors.As(err, &host):
		return "the brokers' certificate is for another name: set kafka.tls.server_name, or connect by the name in it"
	case errors.As(err, &invalid):
		return "the brokers' certificate is not valid now: check its dates and the clock here"
	case errors.As(err, &alert):
		return "the brokers refused the TLS handshake: check kafka.tls.cert and kafka.tls.key"
	case errors.As(err, &lookup):
		return "the name can't be resolved here: check kafka.brokers, and the brokers' advertised.listeners"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there: check kafka.brokers, and the brokers' advertised.listeners"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the broker closed the connection: check the credentials (kafka.sasl), the kind of port (TLS or plaintext), and the broker's log"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time: check kafka.brokers, the network, the kind of port (TLS or plaintext), and the brokers' advertised.listeners"
	}
	return ""
}
