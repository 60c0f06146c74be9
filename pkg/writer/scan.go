package writer

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// ScanKeys reads the given columns of every row that the condition lets through, each row as one JSON object whose values read back exactly as they are stored. It reads a
// replica that has caught up with everything that was acknowledged when it was asked. The rows are valid during the call of each.
func (s *Server) ScanKeys(ctx context.Context, t *Table, columns []string, where string, each func(rows []string) error) error {
	object := make([]string, len(columns))
	for i, name := range columns {
		if _, err := t.column(name); err != nil {
			return &inputError{err}
		}
		sep := ","
		if i == 0 {
			sep = "{"
		}
		object[i] = fmt.Sprintf("%s, toJSONString(%s), ':', toJSONString(%s)", quoteText(sep), quoteText(name), quoteName(name))
	}
	body := fmt.Sprintf("SELECT concat(%s, '}') FROM %s", strings.Join(object, ", "), t.quoted())
	if where != "" {
		body += " WHERE " + where
	}
	settings := append([]proto.Setting{
		{Key: "final", Value: "0"}, {Key: "date_time_output_format", Value: "iso"},
		{Key: "output_format_json_quote_64bit_integers", Value: "0"}, {Key: "output_format_json_quote_decimals", Value: "0"},
		{Key: "output_format_json_escape_forward_slashes", Value: "0"},
	}, pinnedForReads...)
	if strings.HasPrefix(t.Engine, "Shared") {
		settings = append(settings, proto.Setting{Key: "select_sequential_consistency", Value: "1"})
	}
	err := s.onAny(ctx, func(r *replicaState) error {
		return s.session(ctx, r, false, func(do doer) error {
			if err := s.caughtUp(ctx, do, r, t); err != nil {
				return err
			}
			var found proto.ColStr
			var rows []string
			_, err := do(ctx, &request{
				body: body, settings: settings, result: namedByServer(proto.Results{{Data: &found}}),
				onBlock: func(int) error {
					rows = rows[:0]
					for i := range found.Rows() {
						rows = append(rows, found.Row(i))
					}
					found.Reset()
					if len(rows) == 0 {
						return nil
					}
					if err := each(rows); err != nil {
						return &inputError{err} // of another replica it would not get better
					}
					return nil
				},
			})
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("read the keys of %s: %w", t, err)
	}
	return nil
}

// Count is how many rows the condition lets through.
func (s *Server) Count(ctx context.Context, t *Table, where string) (int64, error) {
	body := "SELECT toString(count()) FROM " + t.quoted()
	if where != "" {
		body += " WHERE " + where
	}
	rows, err := s.readAny(ctx, 1, body)
	if err != nil {
		return 0, fmt.Errorf("count the rows of %s: %w", t, err)
	}
	return number(rows[0][0]), nil
}

// Since is a condition on an event time column, in whole milliseconds where it is an integer: it lets every row through that is not older, and few of the others, for
// a Date counts in whole days of some zone.
func (t *Table) Since(column string, ms int64) string {
	c, err := t.column(column)
	if err != nil {
		return ""
	}
	if strings.Contains(c.Type, "Int") {
		return fmt.Sprintf("%s >= %d", quoteName(column), ms)
	}
	return fmt.Sprintf("%s >= fromUnixTimestamp64Milli(toInt64(%d))", quoteName(column), ms-2*24*3600*1000)
}
