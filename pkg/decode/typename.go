package decode

import (
	"fmt"
	"strconv"
	"strings"
)

// typeName is a type as ClickHouse spells it, taken apart.
type typeName struct {
	name string
	args []typeArg
	text string
}

// typeArg is one of: a type (with a name, in a Tuple), a quoted string (with a
// value, in an Enum), a number.
type typeArg struct {
	typ    *typeName
	name   string // of a member of a Tuple
	quoted bool
	text   string // content of a quoted string, or digits
	value  string // what follows "=", in an Enum
}

// parseType reads a whole type name. Names inside quotes may hold anything,
// commas, brackets, "=" and escapes included.
func parseType(text string) (*typeName, error) {
	p := typeParser{s: text}
	t, err := p.typ()
	if err == nil && p.i != len(text) {
		err = fmt.Errorf("unexpected %q at %d", text[p.i:], p.i)
	}
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", text, err)
	}
	return t, nil
}

type typeParser struct {
	s string
	i int
}

func (p *typeParser) space() {
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
}

func (p *typeParser) take(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// word reads up to a character that ends a name or a number.
func (p *typeParser) word() string {
	p.space()
	from := p.i
	for p.i < len(p.s) && !strings.ContainsRune("(),=' ", rune(p.s[p.i])) {
		p.i++
	}
	return p.s[from:p.i]
}

func (p *typeParser) typ() (*typeName, error) {
	p.space()
	from := p.i
	t := &typeName{name: p.word()}
	if t.name == "" {
		return nil, fmt.Errorf("a name is missing at %d", p.i)
	}
	return t, p.args(t, from)
}

// args reads what follows the name of a type, if it is in brackets.
func (p *typeParser) args(t *typeName, from int) error {
	if opaqueType(t.name) {
		return p.skipArgs(t, from)
	}
	if p.take('(') && !p.take(')') {
		for {
			a, err := p.arg()
			if err != nil {
				return err
			}
			t.args = append(t.args, a)
			if p.take(',') {
				continue
			}
			if p.take(')') {
				break
			}
			return fmt.Errorf("a bracket is missing at %d", p.i)
		}
	}
	t.text = p.s[from:p.i]
	return nil
}

// skipArgs steps over arguments that are of no use here; those of JSON have a
// grammar of their own.
func (p *typeParser) skipArgs(t *typeName, from int) error {
	end := p.i
	if p.take('(') {
		for depth := 1; depth > 0; p.i++ {
			if p.i >= len(p.s) {
				return fmt.Errorf("a bracket is missing at %d", p.i)
			}
			switch c := p.s[p.i]; c {
			case '(':
				depth++
			case ')':
				depth--
			case '\'', '`':
				if _, err := p.quoted(); err != nil {
					return err
				}
				p.i-- // the loop steps over it
			}
		}
		end = p.i
	}
	t.text, p.i = p.s[from:end], end
	return nil
}

func (p *typeParser) arg() (typeArg, error) {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == '\'' {
		text, err := p.quoted()
		a := typeArg{quoted: true, text: text}
		if err == nil && p.take('=') {
			a.value = p.word()
		}
		return a, err
	}
	if p.i < len(p.s) && p.s[p.i]-'0' <= 9 {
		return typeArg{text: p.word()}, nil
	}
	if p.i < len(p.s) && p.s[p.i] == '`' {
		name, err := p.quoted()
		if err != nil {
			return typeArg{}, err
		}
		t, err := p.typ()
		return typeArg{typ: t, name: name}, err
	}
	// A second word makes the first one a member's name.
	from := p.i
	first := p.word()
	if p.space(); p.i < len(p.s) && !strings.ContainsRune("(),='", rune(p.s[p.i])) {
		t, err := p.typ()
		return typeArg{typ: t, name: first}, err
	}
	p.i = from
	t, err := p.typ()
	return typeArg{typ: t}, err
}

// quoted reads text in the quotes, of either kind, that it begins with.
func (p *typeParser) quoted() (string, error) {
	var b strings.Builder
	quote := p.s[p.i]
	for p.i++; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == quote && p.i+1 < len(p.s) && p.s[p.i+1] == quote:
			p.i++
			b.WriteByte(quote)
		case c == quote:
			p.i++
			return b.String(), nil
		case c == '\\' && p.i+1 < len(p.s):
			p.i++
			if err := p.escaped(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("a quote is missing")
}

// escaped reads what follows a backslash the way ClickHouse's own parser does.
func (p *typeParser) escaped(b *strings.Builder) error {
	const from, to = "btnfr0ave", "\b\t\n\f\r\x00\a\v\x1b"
	c := p.s[p.i]
	if i := strings.IndexByte(from, c); i >= 0 {
		b.WriteByte(to[i])
		return nil
	}
	if c == 'x' {
		if p.i+2 >= len(p.s) {
			return fmt.Errorf("bad escape at %d", p.i)
		}
		v, err := strconv.ParseUint(p.s[p.i+1:p.i+3], 16, 8)
		if err != nil {
			return fmt.Errorf("bad escape at %d", p.i)
		}
		p.i += 2
		b.WriteByte(byte(v))
		return nil
	}
	b.WriteByte(c)
	return nil
}

// number returns argument i as a number within [low, high].
func (t *typeName) number(i, low, high int) (int, error) {
	if i >= len(t.args) || t.args[i].typ != nil || t.args[i].quoted {
		return 0, fmt.Errorf("type %q: argument %d must be a number", t.text, i+1)
	}
	v, err := strconv.Atoi(t.args[i].text)
	if err != nil || v < low || v > high {
		return 0, fmt.Errorf("type %q: argument %d must be from %d to %d", t.text, i+1, low, high)
	}
	return v, nil
}

// elem returns argument i as a type.
func (t *typeName) elem(i int) (*typeName, error) {
	if i >= len(t.args) || t.args[i].typ == nil {
		return nil, fmt.Errorf("type %q: argument %d must be a type", t.text, i+1)
	}
	return t.args[i].typ, nil
}

// nullable tells whether a column of this type has NULL for what is absent.
func (t *typeName) nullable() bool {
	return t.name == "Nullable" || t.name == "LowCardinality" && len(t.args) == 1 && t.args[0].typ != nil && t.args[0].typ.nullable()
}
