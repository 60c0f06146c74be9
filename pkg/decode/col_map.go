package decode

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
)

// mapCol is Map(K, V), from an object. A name is a string to the key column.
type mapCol struct {
	typ      proto.ColumnType
	off      offsets
	key, val column
	// spelt keys are those that several names can spell: 1 and 1.0.
	spelt bool
	// words: the names are true and false.
	words bool
}

func newMap(t, keyType *typeName, key, val column) (column, error) {
	c := &mapCol{typ: proto.ColumnType(t.text), key: key, val: val}
	switch k := keyType.text; {
	case keyType.composite() || keyType.nullable():
		return nil, fmt.Errorf("type %q is not supported: the name of a member cannot spell its key; make the column an Array(Tuple(key %s, value ...))", t.text, k)
	default:
		c.spelt = k != "String" && k != "LowCardinality(String)"
		c.words = keyType.name == "Bool" || k == "LowCardinality(Bool)"
	}
	return c, nil
}

func (c *mapCol) Type() proto.ColumnType { return c.typ }
func (c *mapCol) Rows() int              { return c.off.Rows() }
func (c *mapCol) Reset()                 { c.off.Reset(); c.key.Reset(); c.val.Reset() }
func (c *mapCol) size() int              { return c.off.size() + c.key.size() + c.val.size() }
func (c *mapCol) appendZero()            { c.off.v = append(c.off.v, uint64(c.key.Rows())) }

func (c *mapCol) truncate(n int) {
	c.off.truncate(n)
	c.key.truncate(c.off.end(n))
	c.val.truncate(c.off.end(n))
}

func (c *mapCol) keep(sel []bool) {
	elems := c.off.keepElems(sel)
	c.key.keep(elems)
	c.val.keep(elems)
}

func (c *mapCol) appendToken(t *token, s *scanner) fault {
	if t.kind != kObj {
		return notString(t)
	}
	outer := s.data
	s.data = t.raw
	f := c.members(s)
	s.data = outer
	if f == ok {
		c.appendZero()
	}
	return f
}

func (c *mapCol) members(s *scanner) fault {
	t := s.push()
	defer s.pop()
	var object uint32
	if c.spelt {
		object = s.names.object()
	}
	p := s.space(1)
	for more := s.data[p] != '}'; more; {
		var f fault
		if p, f = s.name(p, t); f != ok {
			return f
		}
		if c.words {
			t.kind = word(t.str)
		}
		if f = c.key.appendToken(t, s); f != ok {
			return f
		}
		if c.spelt && !c.newKey(s, object) {
			return fSameKey
		}
		if p, f = s.whole(p, t); f != ok {
			return f
		}
		if f = c.val.appendToken(t, s); f != ok {
			return f
		}
		if p, more, f = s.next(p, '}'); f != ok {
			return f
		}
	}
	return ok
}

// newKey tells whether the object did not have the last key yet.
func (c *mapCol) newKey(s *scanner, object uint32) bool {
	s.key, _ = c.key.appendKey(s.key[:0], c.key.Rows()-1)
	return s.names.add(object, s.key)
}

// word returns the kind of the literal that a name spells.
func word(name []byte) kind {
	switch string(name) {
	case "true":
		return kTrue
	case "false":
		return kFalse
	}
	return kStr
}

func (c *mapCol) appendFrom(src column, i int) {
	from := src.(*mapCol)
	for e := from.off.end(i); e < from.off.end(i+1); e++ {
		c.key.appendFrom(from.key, e)
		c.val.appendFrom(from.val, e)
	}
	c.appendZero()
}

func (c *mapCol) appendKey(dst []byte, _ int) ([]byte, bool) { return dst, false }

func (c *mapCol) EncodeState(b *proto.Buffer)       { encodeState(b, c.key, c.val) }
func (c *mapCol) DecodeState(r *proto.Reader) error { return decodeState(r, c.key, c.val) }

func (c *mapCol) EncodeColumn(b *proto.Buffer) {
	c.off.EncodeColumn(b)
	c.key.EncodeColumn(b)
	c.val.EncodeColumn(b)
}

func (c *mapCol) WriteColumn(w *proto.Writer) {
	c.off.WriteColumn(w)
	c.key.WriteColumn(w)
	c.val.WriteColumn(w)
}

func (c *mapCol) DecodeColumn(r *proto.Reader, rows int) error {
	n, err := c.off.decode(r, rows)
	if err != nil {
		return err
	}
	if err := c.key.DecodeColumn(r, n); err != nil {
		return err
	}
	return c.val.DecodeColumn(r, n)
}
