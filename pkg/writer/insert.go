package writer

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// Statement is one insert of one block.
type Statement struct {
	Table    *Table
	Input    proto.Input // every column that the table stores and that isn't MATERIALIZED, in any order
	Rows     int
	Token    string
	QueryID  string
	Deadline time.Time // on the server's clock: the latest moment at which the server may start it
	Settings map[string]string
}

// Insert sends the statement once, to the given replica or, if that is "", to any that answers. It doesn't repeat anything that a server may have seen data of,
// and it never cancels: when ctx or the insert timeout ends, the statement may still be running.
func (s *Server) Insert(ctx context.Context, replica string, st *Statement) Result {
	body, err := insertSQL(st)
	if err != nil {
		return Result{Outcome: Rejected, Cause: Shape, Message: err.Error()}
	}
	if replica != "" {
		r, err := s.byAddress(replica)
		if err != nil {
			return Result{Outcome: Rejected, Cause: Misconfigured, Message: err.Error()}
		}
		return s.insertInto(ctx, r, st, body)
	}
	var last Result
	for i, r := range s.order() {
		if i > 0 && ctx.Err() != nil {
			break
		}
		last = s.insertInto(ctx, r, st, body)
		if last.Outcome != Rejected || last.Cause != Network {
			break
		}
	}
	return last
}

func (s *Server) insertInto(ctx context.Context, r *replicaState, st *Statement, body string) Result {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.InsertTimeout)
	defer cancel()
	return s.send(ctx, s.on(r), r, st, body)
}

// insertOn is Insert in a session.
func (s *Server) insertOn(ctx context.Context, do doer, r *replicaState, st *Statement) (Result, error) {
	body, err := insertSQL(st)
	if err != nil {
		return Result{}, err
	}
	return s.send(ctx, do, r, st, body), nil
}

func (s *Server) send(ctx context.Context, do doer, r *replicaState, st *Statement, body string) Result {
	sent, err := do(ctx, &request{
		body: body, id: st.QueryID, settingsFor: func(f *facts) []proto.Setting { return s.insertSettings(f, st, body) }, input: st.Input,
		header: func(columns proto.ColInfoInput) error { return sameColumns(columns, st.Input) },
	})
	result := classify(err, sent, st.Table)
	result.Replica = r.addr
	return result
}

// insertSQL is the statement. It reads the block through input(), which lets a condition on the server's clock stand before the write.
func insertSQL(st *Statement) (string, error) {
	if st.Rows <= 0 || len(st.Input) == 0 {
		return "", fmt.Errorf("insert into %s: no rows", st.Table)
	}
	if st.Token == "" || st.QueryID == "" || st.Deadline.IsZero() {
		return "", fmt.Errorf("insert into %s: token, query id and deadline are needed", st.Table)
	}
	for _, in := range st.Input {
		if rows := in.Data.Rows(); rows != st.Rows {
			return "", fmt.Errorf("insert into %s: column %s has %d rows, %d are wanted", st.Table, in.Name, rows, st.Rows)
		}
	}
	names, structure, err := structureOf(st.Table, st.Input)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM input(%s) WHERE NOT throwIf(now64(3) > toDateTime64('%s', 3, 'UTC'), %s) FORMAT Native",
		st.Table.quoted(), names, quoteText(structure), st.Deadline.UTC().Format("2006-01-02 15:04:05.000"), quoteText(deadlineText)), nil
}

// sameColumns compares what the server expects with what is about to leave: it would take a block with other names in silence, with defaults instead of the values.
func sameColumns(want proto.ColInfoInput, have proto.Input) error {
	if len(want) != len(have) {
		return fmt.Errorf("the server expects %d columns, the block has %d", len(want), len(have))
	}
	for i, w := range want {
		if w.Name != have[i].Name {
			return fmt.Errorf("the server expects column %s at place %d, the block has %s", w.Name, i+1, have[i].Name)
		}
		if t := have[i].Data.Type(); w.Type.Conflicts(t) {
			return fmt.Errorf("column %s: the server expects %s, the block has %s", w.Name, w.Type, t)
		}
	}
	return nil
}
