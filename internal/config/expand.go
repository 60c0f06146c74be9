package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Lookup is how the environment is asked: os.LookupEnv, or a test's own.
type Lookup func(name string) (value string, ok bool)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${VAR}, ${VAR:-default} and ${file:/path} in a scalar's text, once: what comes in is not expanded again.
// `$$` is a dollar sign; a dollar before anything else is itself, so that patterns ('^a$') and $timestamp need no escape.
func expand(text string, env Lookup) (expanded string, fromFile bool, err error) {
	if !strings.Contains(text, "$") {
		return text, false, nil
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			out.WriteString(text)
			return out.String(), fromFile, nil
		}
		out.WriteString(text[:i])
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			text = text[i+2:]
		case '{':
			name, rest, ok := strings.Cut(text[i+2:], "}")
			if !ok {
				return "", false, errors.New("has a ${ without its }; a dollar sign before a brace is written $${")
			}
			value, isFile, err := lookUp(name, env)
			if err != nil {
				return "", false, err
			}
			out.WriteString(value)
			fromFile = fromFile || isFile
			text = rest
		default:
			out.WriteByte('$')
			text = text[i+1:]
		}
	}
}

func lookUp(name string, env Lookup) (value string, fromFile bool, err error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		value, err := readValue(path)
		return value, true, err
	}
	name, byDefault, hasDefault := strings.Cut(name, ":-")
	if !variableName.MatchString(name) {
		return "", false, fmt.Errorf("${%s} names no variable; write ${NAME}, ${NAME:-default} or ${file:/path}, and $${ for the characters themselves", name)
	}
	value, ok := env(name)
	if hasDefault && value == "" { // as in a shell: `:-` also replaces an empty value
		return byDefault, false, nil
	}
	if !ok {
		return "", false, fmt.Errorf("environment variable %s is not set; set it, or write ${%s:-default}", name, name)
	}
	return value, false, nil
}

// readValue reads a value that somebody keeps in a file. Editors and `echo` end it with a line feed, which is no part of it.
func readValue(path string) (string, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("file %s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("file %s can't be read by this user: mind its owner and mode", path)
	case err != nil:
		return "", fmt.Errorf("file %s can't be read: %w", path, errors.Unwrap(err))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
