package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong, where it is, and what to write instead.
type Problem struct {
	Line    int    `json:"line,omitempty"` // 0: the field isn't in the file
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Invalid is everything that is wrong with a configuration.
type Invalid struct {
	File     string    `json:"file"`
	Problems []Problem `json:"problems"`
}

// Error is one line a problem: `sink.yaml:12: batch.max_rows: …`.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		at := e.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", e.File, p.Line)
		}
		if p.Field != "" {
			at += ": " + p.Field
		}
		lines[i] = at + ": " + p.Message
	}
	return strings.Join(lines, "\n")
}

// problems collects; the order is the file's.
type problems struct {
	list []Problem
	source
}

// source is what is known of the text behind the values.
type source struct {
	lines    map[string]int       // where each field stands
	expanded map[string][2]string // fields with a ${…}: as written, and what came of it
}

// at adds a problem of a field. A field that isn't in the file is looked for where its parent stands.
// The value of a variable or file isn't shown, but its name: it may be a secret in the wrong place.
func (p *problems) at(field, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if x, ok := p.expanded[field]; ok && x[1] != "" {
		quoted := strings.Trim(strconv.Quote(x[1]), `"`)
		message = strings.ReplaceAll(strings.ReplaceAll(message, quoted, x[0]), x[1], x[0])
	}
	p.list = append(p.list, Problem{Line: p.lineOf(field), Field: field, Message: message})
}

func (p *problems) lineOf(field string) int {
	for field != "" {
		if line, ok := p.lines[field]; ok {
			return line
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 0
}

func (p *problems) err(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return a.Line - b.Line })
	return &Invalid{File: file, Problems: p.list}
}
