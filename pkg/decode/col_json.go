package decode

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"github.com/ClickHouse/ch-go/proto"
)

// jsonCol is JSON, from an object, whose text is sent for the server to take
// apart. To the server the value is its leaves, each under its path: a null
// member and an empty object have none. What it would read as another value is
// refused here, where it costs one record and not the block: a number that a
// double rounds, an integer beyond 64 bits, a name with a dot, which it takes
// for a path.
type jsonCol struct{ strCol }

// Typed and skipped paths are refused: the server would convert by rules of its
// own, or drop.
var plainJSON = regexp.MustCompile(`^JSON(\((max_dynamic_(paths|types) ?= ?\d+(, ?|\)$))+)?$`)

func newJSONColumn(t *typeName) (column, error) {
	if !plainJSON.MatchString(t.text) {
		return nil, fmt.Errorf("type %q is not supported: the server converts or drops what stands at the paths that it names; make the column JSON, and give those members columns of their own (columns.NAME.from)", t.text)
	}
	return &jsonCol{strCol{typ: proto.ColumnType(t.text)}}, nil
}

func (c *jsonCol) appendToken(t *token, s *scanner) fault {
	if t.kind != kObj {
		return notString(t)
	}
	if f := s.kept(t.raw); f != ok {
		return f
	}
	return c.appendBytes(t.raw)
}

func (c *jsonCol) appendZero() { c.appendBytes([]byte("{}")) }

func (c *jsonCol) appendFrom(src column, i int) { c.appendBytes(src.(*jsonCol).at(i)) }

func (c *jsonCol) appendKey(dst []byte, _ int) ([]byte, bool) { return dst, false }

// jsonText is the version of the wire form in which values are text.
const jsonText = 1

func (c *jsonCol) EncodeState(b *proto.Buffer) { b.PutUInt64(jsonText) }

func (c *jsonCol) DecodeState(r *proto.Reader) error {
	v, err := r.UInt64()
	if err == nil && v != jsonText {
		err = fmt.Errorf("JSON of version %d, want %d: is output_format_native_write_json_as_string set?", v, jsonText)
	}
	return err
}

// kept tells whether a JSON column keeps all of an array or object, which was
// walked before.
func (s *scanner) kept(text []byte) fault {
	outer := s.data
	s.data = text
	f := s.keptMembers()
	s.data = outer
	return f
}

func (s *scanner) keptMembers() fault {
	t := s.push()
	defer s.pop()
	closing := s.data[0] + 2 // of [ and of {
	p := s.space(1)
	for more := s.data[p] != closing; more; {
		var f fault
		if closing == '}' {
			if p, f = s.name(p, t); f != ok {
				return f
			}
			if bytes.IndexByte(t.str, '.') >= 0 {
				return s.inside(string(t.str), fDot)
			}
		}
		if p, f = s.whole(p, t); f != ok {
			return f
		}
		switch t.kind {
		case kArr, kObj:
			f = s.kept(t.raw)
		case kNum:
			f = t.keptByJSON()
		}
		if f != ok {
			return f
		}
		if p, more, f = s.next(p, closing); f != ok {
			return f
		}
	}
	return ok
}

// keptByJSON tells whether the server's JSON has a number for this one: 64-bit
// integers for what is written as an integer, else the doubles, which it writes
// with as few digits as tell them apart.
func (t *token) keptByJSON() fault {
	if !bytes.ContainsAny(t.raw, ".eE") {
		if t.big || t.neg && t.mant > 1<<63 {
			return fRange
		}
		return ok
	}
	v, f := t.float(64)
	if f != ok {
		return f
	}
	var room [32]byte
	s := scanner{data: strconv.AppendFloat(room[:0], v, 'e', -1, 64)}
	var short token
	s.num(0, &short)
	var a, b [2*plainDigits + 16]byte
	if !bytes.Equal(appendCanonical(a[:0], t), appendCanonical(b[:0], &short)) {
		return fInexact
	}
	return ok
}
