package writer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/ClickHouse/ch-go/proto"
)

// Format is how Query prints rows.
type Format string

// The formats that are printed.
const (
	TSV       Format = "TabSeparated"
	JSONLines Format = "JSONEachRow"
)

// Query runs any one statement on any replica that answers and prints its rows, a line each. The server itself formats the rows of a SELECT (by formatRow), so there is no type
// that can't be printed; the few columns of SHOW, DESCRIBE and the like are decoded here. Not promised: rows of INSERT … VALUES on servers before 25.12, which leave the
// parsing of inline data to their clients.
func (s *Server) Query(ctx context.Context, statement string, format Format, out io.Writer) error {
	statement, format, err := prepareStatement(statement, format)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	err = s.onAny(ctx, func(r *replicaState) error {
		switch firstWord(statement) {
		case "SELECT", "WITH", "EXPLAIN", "(", "FROM":
			return s.printFormatted(ctx, r, statement, format, w)
		case "INSERT":
			return s.insertInline(ctx, r, statement)
		default:
			return s.printDecoded(ctx, r, statement, format, w)
		}
	})
	if flushErr := w.Flush(); err == nil && flushErr != nil {
		return fmt.Errorf("print the result: %w", flushErr)
	}
	return err
}

// prepareStatement drops a trailing semicolon and a FORMAT clause, which is for the client to obey.
func prepareStatement(text string, format Format) (string, Format, error) {
	text = strings.TrimRightFunc(text, func(c rune) bool { return c == ';' || unicode.IsSpace(c) })
	if firstWord(text) == "" {
		return "", "", errors.New("the statement is empty")
	}
	if firstWord(text) == "INSERT" {
		return text, format, nil
	}
	words := strings.Fields(text)
	if len(words) < 3 || !strings.EqualFold(words[len(words)-2], "FORMAT") {
		return text, format, nil
	}
	name := words[len(words)-1]
	switch strings.ToLower(name) {
	case "tsv", "tabseparated":
		format = TSV
	case "jsoneachrow", "jsonlines", "ndjson":
		format = JSONLines
	default:
		return "", "", fmt.Errorf("FORMAT %s isn't printed here: leave it out for tabs between the values, or ask for JSON lines", name)
	}
	text = strings.TrimRightFunc(strings.TrimSuffix(text, name), unicode.IsSpace)
	return strings.TrimRightFunc(text[:len(text)-len("FORMAT")], unicode.IsSpace), format, nil
}

// firstWord is the keyword that a statement begins with, behind comments and spaces, in capitals.
func firstWord(text string) string {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		switch {
		case strings.HasPrefix(text, "--"), strings.HasPrefix(text, "#!"), strings.HasPrefix(text, "# "):
			_, rest, found := strings.Cut(text, "\n")
			if !found {
				return ""
			}
			text = rest
			continue
		case strings.HasPrefix(text, "/*"):
			_, rest, found := strings.Cut(text, "*/")
			if !found {
				return ""
			}
			text = rest
			continue
		case strings.HasPrefix(text, "("):
			return "("
		}
		end := strings.IndexFunc(text, func(c rune) bool { return !unicode.IsLetter(c) })
		if end < 0 {
			end = len(text)
		}
		return strings.ToUpper(text[:end])
	}
}

func (s *Server) printFormatted(ctx context.Context, r *replicaState, statement string, format Format, w *bufio.Writer) error {
	var line proto.ColStr
	printed := false
	err := s.do(ctx, r, &request{
		body:     "SELECT formatRowNoNewline(" + quoteText(string(format)) + ", *) FROM (" + statement + "\n)",
		settings: pinnedForReads, result: namedByServer(proto.Results{{Data: &line}}), patient: true,
		onBlock: func(rows int) error {
			printed = true
			for i := range rows {
				if _, err := w.Write(line.RowBytes(i)); err != nil {
					return &inputError{err}
				}
				if err := w.WriteByte('\n'); err != nil {
					return &inputError{err}
				}
			}
			return nil
		},
	})
	if printed && err != nil && unreachable(err) { // printed rows can't be taken back, so no other replica is asked
		return &inputError{fmt.Errorf("the result is incomplete: %w", err)}
	}
	return err
}

// insertInline runs an INSERT. New servers parse inline data themselves when asked to; without data there is nothing to parse.
func (s *Server) insertInline(ctx context.Context, r *replicaState, statement string) error {
	known, err := s.on(r).settings(ctx, "system.settings", "name = 'send_table_structure_on_insert_with_inline_data'")
	if err != nil {
		return err
	}
	q := &request{body: statement, result: discard{}, patient: true}
	for name := range known {
		q.settings = append(q.settings, proto.Setting{Key: name, Value: "0"})
	}
	// A server that waits for a block has sent its columns first.
	asked := errors.New("the server wants a client to parse the data of this INSERT: write it as INSERT … SELECT")
	q.input, q.header = proto.Input{}, func(proto.ColInfoInput) error { return asked }
	err = s.do(ctx, r, q)
	if errors.Is(err, asked) {
		return &inputError{asked}
	}
	return err
}

// printDecoded prints what ch-go can decode.
func (s *Server) printDecoded(ctx context.Context, r *replicaState, statement string, format Format, w *bufio.Writer) error {
	var results proto.Results
	return s.do(ctx, r, &request{
		body: statement, settings: []proto.Setting{{Key: "low_cardinality_allow_in_native_format", Value: "0"}}, result: results.Auto(), patient: true,
		onBlock: func(rows int) error {
			for i := range rows {
				if err := printRow(w, results, i, format); err != nil {
					return &inputError{err}
				}
			}
			return nil
		},
	})
}

func printRow(w *bufio.Writer, results proto.Results, row int, format Format) error {
	fields := make([]string, len(results))
	for i, column := range results {
		v := cell(column.Data, row)
		if format == JSONLines {
			name, err := json.Marshal(column.Name)
			if err != nil {
				return err
			}
			value, err := json.Marshal(v)
			if err != nil {
				return err
			}
			fields[i] = string(name) + ":" + string(value)
			continue
		}
		fields[i] = tsvEscaper.Replace(fmt.Sprint(v))
	}
	line := strings.Join(fields, "\t")
	if format == JSONLines {
		line = "{" + strings.Join(fields, ",") + "}"
	}
	_, err := w.WriteString(line + "\n")
	return err
}

var tsvEscaper = strings.NewReplacer("\\", "\\\\", "\t", "\\t", "\n", "\\n")

// cell is one value of a decoded column.
func cell(column proto.ColResult, row int) any {
	method := reflect.ValueOf(column).MethodByName("Row")
	if !method.IsValid() {
		return fmt.Sprintf("(%s can't be shown)", column.Type())
	}
	switch v := method.Call([]reflect.Value{reflect.ValueOf(row)})[0].Interface().(type) {
	case time.Time:
		return v.Format("2006-01-02 15:04:05.999999999")
	case fmt.Stringer:
		return v.String()
	default:
		return v
	}
}
