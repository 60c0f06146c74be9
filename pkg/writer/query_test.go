package writer

import (
	"strings"
	"testing"
)

func TestQueryPrintsStatementsOfAnyKind(t *testing.T) {
	s := server(t)
	n := tableName()
	for _, c := range []struct {
		statement string
		format    Format
		want      string // "ERR" and a part of the error
	}{
		{"CREATE TABLE " + n + " (a UInt64, b LowCardinality(Nullable(String)), m Map(String, Tuple(x UInt8, y Nullable(Enum8('p' = 1)))))  ENGINE = MergeTree ORDER BY a;", TSV, ""},
		{"INSERT INTO " + n + " VALUES (1, 'x\ty', map('k', (1, 'p'))), (2, NULL, map())", TSV, ""},
		{"INSERT INTO " + n + " (a) SELECT number + 3 FROM numbers(2)", TSV, ""},
		{"INSERT INTO " + n + " FORMAT JSONEachRow {\"a\": 9}", TSV, ""},
		{"SELECT * FROM " + n + " ORDER BY a", TSV, "1\tx\\ty\t{'k':(1,'p')}\n2\t\\N\t{}\n3\t\\N\t{}\n4\t\\N\t{}\n9\t\\N\t{}\n"},
		{"-- a comment\n SELECT a, b, m FROM " + n + " ORDER BY a LIMIT 2 FORMAT JSONEachRow\n;\n", TSV, "{\"a\":1,\"b\":\"x\\ty\",\"m\":{\"k\":{\"x\":1,\"y\":\"p\"}}}\n{\"a\":2,\"b\":null,\"m\":{}}\n"},
		{"SELECT count(), sum(a), 1 AS `x y` FROM " + n, JSONLines, "{\"count()\":5,\"sum(a)\":19,\"x y\":1}\n"},
		{"WITH 1 AS one SELECT one, '{\"j\":1}'::JSON -- tail", TSV, "1\t{\"j\":1}\n"},
		{"(SELECT 1) UNION ALL (SELECT 1)", TSV, "1\n1\n"},
		{"SELECT number FROM numbers(3) ORDER BY number DESC", TSV, "2\n1\n0\n"},
		{"SELECT 1 WHERE 0", TSV, ""},
		{"SELECT b FROM " + n + " WHERE a = 1", JSONLines, "{\"b\":\"x\\ty\"}\n"},
		{"EXISTS TABLE " + n, TSV, "1\n"},
		{"SHOW TABLES LIKE '" + n + "'", JSONLines, "{\"name\":\"" + n + "\"}\n"},
		{"DESCRIBE TABLE (SELECT 1 AS a)", TSV, "a\tUInt8\t\t\t\t\t\n"},
		{"SELECT 1 FORMAT Vertical", TSV, "ERR isn't printed here"},
		{"SELEKT 1", TSV, "ERR Syntax error"},
		{" ; ", TSV, "ERR empty"},
		{"SELECT nothing FROM " + n, TSV, "ERR Unknown expression"},
		{"INSERT INTO " + n + " (a) VALUES", TSV, "ERR INSERT … SELECT"},
		{"DROP TABLE " + n, TSV, ""},
	} {
		var out strings.Builder
		err := s.Query(t.Context(), c.statement, c.format, &out)
		if want, bad := strings.CutPrefix(c.want, "ERR "); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %q", c.statement, err, want)
			}
			continue
		}
		if err != nil || out.String() != c.want {
			t.Errorf("%s:\n got %q %v\nwant %q", c.statement, out.String(), err, c.want)
		}
	}
}
