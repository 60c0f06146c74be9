package writer

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

const (
	rowsTable = "oncesink_rows"
	rowColumn = "oncesink_row"
)

// PartitionIDs asks the server for the table partition of every row. nil: the table isn't partitioned.
func (s *Server) PartitionIDs(ctx context.Context, t *Table, in proto.Input, rows int) ([]string, error) {
	if !t.partitioned() || rows == 0 {
		return nil, nil
	}
	needed, computed := t.partitionColumns()
	external := proto.Input{}
	for _, column := range in {
		if needed == nil || needed[column.Name] {
			external = append(external, column)
		}
	}
	external = append(external, rowNumbers(rows))
	from := rowsTable
	if len(computed) > 0 {
		from = fmt.Sprintf("(SELECT *, %s FROM %s)", strings.Join(computed, ", "), rowsTable)
	}
	var id proto.ColStr
	numbers := new(proto.ColUInt32).Array()
	out := make([]string, rows)
	seen := 0
	err := s.doAny(ctx, func() *request {
		seen = 0
		return &request{
			body:     fmt.Sprintf("SELECT partitionId(%s) AS id, groupArray(%s) FROM %s GROUP BY id", withoutParentheses(t.PartitionKey), rowColumn, from),
			external: map[string]proto.Input{rowsTable: external}, settings: pinnedForReads,
			result: namedByServer(proto.Results{{Data: &id}, {Data: numbers}}),
			onBlock: func(n int) error {
				for i := range n {
					name := id.Row(i)
					for _, row := range numbers.Row(i) {
						if int(row) >= rows {
							return fmt.Errorf("row %d of %d", row, rows)
						}
						out[row] = name
						seen++
					}
				}
				return nil
			},
		}
	})
	if err != nil {
		return nil, fmt.Errorf("partitions of %d rows of %s: %w", rows, t, err)
	}
	if seen != rows {
		return nil, fmt.Errorf("partitions of %d rows of %s: the server answered for %d", rows, t, seen)
	}
	return out, nil
}

func rowNumbers(rows int) proto.InputColumn {
	at := make(proto.ColUInt32, rows)
	for i := range at {
		at[i] = uint32(i)
	}
	return proto.InputColumn{Name: rowColumn, Data: &at}
}

func (t *Table) partitioned() bool { return t.PartitionKey != "" && t.PartitionKey != "tuple()" }

// partitionColumns are the columns that the partition key is made of, nil for all, and those among them that the server computes.
func (t *Table) partitionColumns() (needed map[string]bool, computed []string) {
	needed = map[string]bool{}
	for _, c := range t.Columns {
		if !c.InPartitionKey {
			continue
		}
		if c.Sent() {
			needed[c.Name] = true
		} else {
			computed = append(computed, fmt.Sprintf("CAST((%s), %s) AS %s", c.DefaultExpr, quoteText(c.Type), quoteName(c.Name)))
		}
	}
	if len(computed) > 0 || len(needed) == 0 {
		return nil, computed
	}
	return needed, nil
}

// withoutParentheses turns a key of several expressions, "(a, b)", into a list of arguments.
func withoutParentheses(key string) string {
	if !strings.HasPrefix(key, "(") {
		return key
	}
	depth, quote := 0, byte(0)
	for i := 0; i < len(key); i++ {
		c := key[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '\'' || c == '`' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 && i < len(key)-1 {
				return key // "(a) + (b)"
			}
		}
	}
	return key[1 : len(key)-1]
}
