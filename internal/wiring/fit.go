package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Finding is one result of a check: what is wrong, why it matters, and the
// exact statement that mends it.
type Finding struct {
	Severity string `json:"severity"` // error | warning | info
	Code     string `json:"code"`
	About    string `json:"about"` // the server, table or topic
	Reason   string `json:"reason"`
	Cure     string `json:"cure,omitempty"`
	Unasked  bool   `json:"unasked,omitempty"` // the server could not be asked: neither fit nor unfit
}

// Severities, worst first.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Unfit refuses a target: exit code 3.
type Unfit struct{ Findings []Finding }

// ExitCode is that of the answer no.
func (e *Unfit) ExitCode() int { return 3 }

func (e *Unfit) Error() string {
	var b strings.Builder
	b.WriteString("the target is unfit:")
	for _, f := range e.Findings {
		fmt.Fprintf(&b, "\n  %s: %s", f.About, f.Reason)
		if f.Cure != "" {
			fmt.Fprintf(&b, "\n    %s", f.Cure)
		}
	}
	return b.String()
}

// fit makes the checks of a route at the start of a run and refuses a target
// with an error among its findings.
func (s *session) fit(ctx context.Context, r *config.Route) error {
	t := s.targets[r]
	findings, err := TargetFindings(ctx, s.cfg, s.server, t.Table, r)
	if err != nil {
		return err
	}
	sc, err := StoreConfig(s.cfg)
	if err != nil {
		return err
	}
	findings = append(findings, StoreFindings(ctx, sc)...)
	var bad []Finding
	for _, f := range findings {
		switch f.Severity {
		case SeverityError:
			if f.Unasked {
				return fmt.Errorf("%s: %s", f.About, f.Reason) // it may be there in a moment
			}
			bad = append(bad, f)
		case SeverityWarning:
			s.log.Warn("check: "+f.Reason, "about", f.About, "code", f.Code, "cure", f.Cure)
		}
	}
	if len(bad) > 0 {
		return &Unfit{bad}
	}
	return nil
}

// StoreFindings checks Redis.
func StoreFindings(ctx context.Context, sc dedup.Config) []Finding {
	var out []Finding
	for _, f := range dedup.Check(ctx, sc) {
		out = append(out, Finding{Severity: f.Severity, Code: f.Code, About: "redis", Reason: f.Reason, Cure: f.Cure, Unasked: f.Unreached})
	}
	return out
}

// DomainFindings tells whether a run would refuse the keys of a route, without writing.
func DomainFindings(ctx context.Context, cfg *config.Config, r *config.Route, t *writer.Table) []Finding {
	sc, err := StoreConfig(cfg)
	if err != nil {
		return nil // told where the store is checked
	}
	var out []Finding
	for _, f := range dedup.CheckDomain(ctx, sc, Domain(cfg, r, t)) {
		out = append(out, Finding{Severity: f.Severity, Code: f.Code, About: "table " + t.String(), Reason: f.Reason, Cure: f.Cure})
	}
	return out
}

// storeRefusal is the answer no of a store that can't serve a route.
func storeRefusal(cfg *config.Config, r *config.Route, err error) (Finding, bool) {
	f := Finding{Severity: SeverityError, Code: "redis_unfit", About: "redis"}
	var unfit *dedup.Unfit
	var route *dedup.RouteChanged
	switch {
	case errors.As(err, &route):
		sc, _ := StoreConfig(cfg) // it was opened with it
		f.Code, f.About = "redis_domain", "table "+cfg.Qualified(r.Table)
		f.Reason, f.Cure = route.Problem(), route.Cure(dedup.DeleteKeys(sc, route.Keys))
	case errors.As(err, &unfit):
		f.Reason, f.Cure = unfit.Problem, unfit.Cure
	default:
		return f, false
	}
	return f, true
}

// TargetFindings checks a table against a route, and the server's behaviour by
// a canary.
func TargetFindings(ctx context.Context, cfg *config.Config, server *writer.Server, t *writer.Table, r *config.Route) ([]Finding, error) {
	list, err := server.Check(ctx, t, writer.Use{Key: r.Key, EventTime: r.EventTime, Horizon: cfg.Redis.Horizon})
	if err != nil {
		return nil, err
	}
	canary, err := server.Canary(ctx, t.Database)
	if err != nil {
		return nil, err
	}
	out := make([]Finding, 0, len(list)+len(canary))
	for _, f := range append(list, canary...) {
		out = append(out, Finding{Severity: f.Severity, Code: f.Code, About: "table " + t.String(), Reason: f.Reason, Cure: f.Cure})
	}
	return out, nil
}

// lastingKafka tells Kafka's errors that only an operator mends.
func lastingKafka(err error) bool {
	var noID *offsets.NoTopicIDError
	if errors.As(err, &noID) {
		return true
	}
	for _, e := range []error{
		kerr.UnknownTopicOrPartition, kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.SaslAuthenticationFailed, kerr.InvalidTopicException, kerr.UnsupportedSaslMechanism,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Unasked tells the error of a ClickHouse that could not be asked from its answer.
func Unasked(err error) bool {
	var ex *writer.Exception
	var missing *writer.NotFound
	var dial *writer.DialError
	switch {
	case err == nil, errors.As(err, &ex), errors.As(err, &missing):
		return false
	}
	var netErr net.Error
	return errors.As(err, &dial) || errors.As(err, &netErr) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// lastingClickHouse tells ClickHouse's answers that only an operator mends.
func lastingClickHouse(err error) bool {
	var ex *writer.Exception
	if errors.As(err, &ex) {
		switch ex.Code {
		case 60, 81, 36, 516, 192, 193, 194, 195, 497, 164, 452, 115, 472:
			return true
		}
	}
	var missing *writer.NotFound
	var d *writer.DialError
	return errors.As(err, &missing) || errors.As(err, &d) && d.Cure != ""
}
