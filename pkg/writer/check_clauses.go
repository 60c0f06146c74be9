package writer

import "strings"

// outer walks over text and calls f at each byte that is outside quotes and brackets, until f says false.
func outer(text string, f func(at int) bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
			continue
		case c == '\'' || c == '`' || c == '"':
			quote = c
			continue
		case c == '(' || c == '[' || c == '{':
			depth++
			continue
		case c == ')' || c == ']' || c == '}':
			depth--
			continue
		}
		if depth == 0 && !f(i) {
			return
		}
	}
}

// splitExpressions cuts a list of expressions at its outer commas.
func splitExpressions(list string) []string {
	var out []string
	start := 0
	outer(list, func(at int) bool {
		if list[at] == ',' {
			out = append(out, strings.TrimSpace(list[start:at]))
			start = at + 1
		}
		return true
	})
	if rest := strings.TrimSpace(list[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

func unquoteName(expr string) string {
	if len(expr) > 1 && expr[0] == '`' {
		return strings.NewReplacer(`\\`, `\`, "\\`", "`").Replace(expr[1 : len(expr)-1])
	}
	return expr
}

// findWords is where the first of the given keywords stands as words of its own, outside quotes and brackets; len(text) and "" when none does. The server
// writes keywords in capitals with one space between.
func findWords(text string, words ...string) (at int, word string) {
	at = len(text)
	outer(text, func(i int) bool {
		if i > 0 && text[i-1] != ' ' && text[i-1] != ')' {
			return true
		}
		for _, w := range words {
			if rest, ok := strings.CutPrefix(text[i:], w); ok && (rest == "" || rest[0] == ' ' || rest[0] == '(') {
				at, word = i, w
				return false
			}
		}
		return true
	})
	return at, word
}

// clauses of an engine definition as system.tables has it, in the server's order.
var clauseWords = []string{"PARTITION BY", "PRIMARY KEY", "ORDER BY", "SAMPLE BY", "TTL", "SETTINGS", "COMMENT"}

// clause cuts an engine definition around one of its clauses: what is before it, its text without the keyword, and what comes after.
func clause(engineFull, word string) (before, text, after string) {
	at, found := findWords(engineFull, word)
	if found == "" {
		return engineFull, "", ""
	}
	before, text = engineFull[:at], engineFull[at+len(word):]
	next := clauseWords[indexOf(clauseWords, word)+1:]
	end, _ := findWords(text, next...)
	return before, strings.TrimSpace(text[:end]), text[end:]
}

func indexOf(list []string, word string) int {
	for i, w := range list {
		if w == word {
			return i
		}
	}
	return len(list) - 1
}
