package main

import "strings"

// splitStatements cuts a script at the semicolons that end statements: those outside of '…', "…", `…`, comments and $tag$…$tag$. The native
// protocol takes one statement at a time. Pieces without a statement (spaces, comments) are left out.
func splitStatements(script string) []string {
	var out []string
	start, empty := 0, true
	cut := func(end int) {
		if !empty {
			out = append(out, strings.TrimSpace(script[start:end]))
		}
		start, empty = end+1, true
	}
	for i := 0; i < len(script); {
		if n := commentLength(script[i:]); n > 0 {
			i += n
			continue
		}
		switch script[i] {
		case ';':
			cut(i)
			i++
			continue
		case ' ', '\t', '\n', '\r':
			i++
			continue
		}
		empty = false
		i += tokenLength(script[i:])
	}
	cut(len(script))
	return out
}

// commentLength is how long the comment is that s begins with, 0 for none. ClickHouse nests /* … */ not.
func commentLength(s string) int {
	switch {
	case strings.HasPrefix(s, "--"), strings.HasPrefix(s, "#!"), strings.HasPrefix(s, "# "):
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			return i + 1
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		if i := strings.Index(s[2:], "*/"); i >= 0 {
			return i + 4
		}
		return len(s)
	}
	return 0
}

// tokenLength is how long the quoted text or heredoc is that s begins with, else 1.
func tokenLength(s string) int {
	switch s[0] {
	case '\'', '"', '`':
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case s[0]: // a doubled quote ends one text and begins another, to the same effect
				return i + 1
			}
		}
		return len(s)
	case '$':
		end := strings.IndexByte(s[1:], '$')
		if end < 0 || strings.ContainsFunc(s[1:end+1], func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return 1
		}
		tag := s[:end+2]
		if i := strings.Index(s[len(tag):], tag); i >= 0 {
			return i + 2*len(tag)
		}
		return 1
	}
	return 1
}
