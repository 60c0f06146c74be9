package config

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// KafkaSASL builds the mechanism; nil means no authentication. Secrets that stand in files are read at every authentication, so a rotated one
// is used from the next connection on. Errors are an *Invalid.
func (c *Config) KafkaSASL() (sasl.Mechanism, error) {
	s := c.Kafka.SASL
	if s == nil {
		return nil, nil
	}
	p := &problems{source: c.source}
	var m sasl.Mechanism
	switch s.Mechanism {
	case "PLAIN":
		m = plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := s.Password.Reveal()
			return plain.Auth{User: s.Username, Pass: password}, secretError("kafka.sasl.password", err)
		})
	case "SCRAM-SHA-256":
		m = scram.Sha256(s.scram)
	case "SCRAM-SHA-512":
		m = scram.Sha512(s.scram)
	case "OAUTHBEARER":
		m = oauth.Oauth(s.oauth)
		if _, err := s.oauth(context.Background()); err != nil {
			p.at("kafka.sasl", "%s", err)
		}
	case "AWS_MSK_IAM":
		m = aws.ManagedStreamingIAM(s.aws)
		if _, err := s.aws(context.Background()); err != nil {
			p.at("kafka.sasl", "%s", err)
		}
	default:
		p.at("kafka.sasl.mechanism", "%q is unknown", s.Mechanism)
	}
	if err := p.err(c.file); err != nil {
		return nil, err
	}
	return m, nil
}

func (s *SASL) scram(context.Context) (scram.Auth, error) {
	password, err := s.Password.Reveal()
	return scram.Auth{User: s.Username, Pass: password}, secretError("kafka.sasl.password", err)
}

func (s *SASL) oauth(context.Context) (oauth.Auth, error) {
	if s.TokenFile == "" {
		token, err := s.Token.Reveal()
		return oauth.Auth{Token: token}, secretError("kafka.sasl.token", err)
	}
	token, err := readValue(s.TokenFile)
	if err == nil && token == "" {
		err = fmt.Errorf("file %s is empty", s.TokenFile)
	}
	return oauth.Auth{Token: token}, secretError("kafka.sasl.token_file", err)
}

func (s *SASL) aws(context.Context) (aws.Auth, error) {
	id, _ := s.env("AWS_ACCESS_KEY_ID")
	key, _ := s.env("AWS_SECRET_ACCESS_KEY")
	session, _ := s.env("AWS_SESSION_TOKEN")
	if id == "" || key == "" {
		return aws.Auth{}, fmt.Errorf("AWS_MSK_IAM needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment (roles of a pod or machine are not asked in this version)")
	}
	return aws.Auth{AccessKey: id, SecretKey: key, SessionToken: session, UserAgent: "oncesink"}, nil
}

func secretError(field string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
