package writer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// Canary tries on every replica, in a scratch table, what exactly-once rests on: a row sent twice under one token counts once, and a statement behind its deadline writes
// nothing. The table is a temporary one; on servers that can't do that, one in db that is dropped again.
func (s *Server) Canary(ctx context.Context, db string) ([]Finding, error) {
	var findings []Finding
	var failures []error
	for _, r := range s.replicas {
		found, err := s.canary(ctx, r, db)
		if err != nil && unreachable(err) {
			failures = append(failures, err)
			continue
		}
		if err != nil {
			found = append(found, Finding{SeverityError, "canary", "canary on " + r.addr + ": " + err.Error(), ""})
		}
		findings = append(findings, found...)
	}
	if len(failures) == len(s.replicas) {
		return nil, fmt.Errorf("canary: %w", errors.Join(failures...))
	}
	return findings, nil
}

func (s *Server) canary(ctx context.Context, r *replicaState, db string) (findings []Finding, err error) {
	now, _, err := s.clockOf(ctx, r)
	if err != nil {
		return nil, err
	}
	err = s.session(ctx, r, false, func(do doer) error {
		t := &Table{Name: "oncesink_canary_" + strings.ToLower(rand.Text()), Columns: []Column{{Name: "n", Type: "UInt64"}}}
		const definition = " (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100"
		if err := do.run(ctx, "CREATE TEMPORARY TABLE "+t.quoted()+definition); err != nil {
			t.Database = db
			if err := do.run(ctx, "CREATE TABLE "+t.quoted()+definition); err != nil {
				var ex *Exception
				if !errors.As(err, &ex) {
					return err
				}
				findings = append(findings, Finding{SeverityWarning, "canary_refused",
					"no scratch table can be made on " + r.addr + ", so whether tokens and deadlines work there isn't proven: " + ex.Message,
					"GRANT CREATE ARBITRARY TEMPORARY TABLE ON *.* TO " + quoteName(s.cfg.Username)})
				return nil
			}
			defer func() { _ = do.run(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS "+t.quoted()) }()
		}
		findings, err = s.canaryInserts(ctx, do, r, t, now)
		return err
	})
	return findings, err
}

func (s *Server) canaryInserts(ctx context.Context, do doer, r *replicaState, t *Table, now time.Time) (findings []Finding, err error) {
	row := proto.ColUInt64{1}
	insert := func(token string, deadline time.Time) (Result, error) {
		st := &Statement{
			Table: t, Input: proto.Input{{Name: "n", Data: &row}}, Rows: 1, Token: token, QueryID: idPrefix + "canary/" + rand.Text(), Deadline: deadline,
		}
		return s.insertOn(ctx, do, r, st)
	}
	count := func() (string, error) {
		rows, err := do.readOne(ctx, 1, "SELECT toString(count()) FROM "+t.quoted())
		if err != nil {
			return "", err
		}
		return rows[0], nil
	}
	add := func(code, reason, cure string) {
		findings = append(findings, Finding{SeverityError, code, "canary on " + r.addr + ": " + reason, cure})
	}
	for range 2 {
		result, err := insert("canary", now.Add(time.Hour))
		if err != nil {
			return findings, err
		}
		if result.Outcome != Written {
			add("canary_insert", "an insert as the sink makes it was refused: "+result.Message, "")
			return findings, nil
		}
	}
	n, err := count()
	if err != nil {
		return findings, err
	}
	if n != "1" {
		add("token_ignored", "a row sent twice under one token counts "+n+" times: a repeat after a lost answer would double rows",
			"see what stands between the sink and the server, or strips settings; ClickHouse 22.2 or later is needed")
	}
	// The refused insert ends the session, so it is the last one; the count is made by what it says.
	result, err := insert("canary late", now.Add(-time.Minute))
	if err != nil {
		return findings, err
	}
	if result.Cause != Late {
		add("deadline_ignored", "an insert behind its deadline wasn't refused ("+result.Outcome.String()+" "+result.Message+"): one that is held back on its way could be written after it was repeated", "")
	}
	return findings, nil
}
