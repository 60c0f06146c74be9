package decode

import (
	"encoding/binary"
	"strconv"
	"unsafe"
)

// The canonical form of a JSON value, version 1. It is what the fingerprint
// hashes, so it is a persistent format: the same bytes for the same value for
// good, whatever the columns of the table are. The first byte tells the type.
//
//	null, false, true   the literal
//	string              " and the content, escapes resolved; no closing quote
//	number              the decimal text of the value: [-]digits[.digits], no
//	                    leading zero but the one before the point, no trailing
//	                    zero behind it, zero is "0" (1.50 = 1.5 = 15e-1). A
//	                    value with more than 40 digits before or behind the
//	                    point is [-]D e E instead, for D*10^E, where D has no
//	                    zero at either end
//	array               [ and for each element its length (4 bytes, little
//	                    endian) and canonical form
//	object              { and the number of its members (4 bytes) and the sum,
//	                    modulo 2^64, of Hasher.Field(name, canonical form)
//	                    over them (8 bytes, both little endian); members that
//	                    are keyed or ignored by path are left out of both
//
// The fingerprint is the same sum over the members of the record.
//
// The forms were chosen so that what producers usually write is canonical as
// it stands and is hashed where it lies.
const plainDigits = 40

// canonical returns the canonical form of a scalar token, in place or built
// at the end of s.canon.
func (s *scanner) canonical(t *token) []byte {
	if t.plain {
		return t.raw
	}
	from := len(s.canon)
	s.canon = appendCanonical(s.canon, t)
	return s.canon[from:]
}

func appendCanonical(dst []byte, t *token) []byte {
	switch {
	case t.plain:
		return append(dst, t.raw...)
	case t.kind == kStr:
		dst = append(dst, '"')
		return append(dst, t.str...)
	}
	return appendCanonicalNumber(dst, t)
}

func appendCanonicalNumber(dst []byte, t *token) []byte {
	if t.mant == 0 && !t.big {
		return append(dst, '0')
	}
	if t.neg {
		dst = append(dst, '-')
	}
	from := len(dst)
	e := int(t.exp)
	leading := true
	for _, c := range t.raw {
		if c|0x20 == 'e' {
			break
		}
		if c-'0' > 9 || leading && c == '0' {
			continue
		}
		leading = false
		dst = append(dst, c)
	}
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
		e++
	}
	n := len(dst) - from
	switch {
	case n+e > plainDigits || -e > plainDigits:
		dst = append(dst, 'e')
		return strconv.AppendInt(dst, int64(e), 10)
	case e >= 0:
		return appendZeros(dst, e)
	case n+e > 0: // the point is inside the digits
		dst = append(dst, 0)
		point := len(dst) - 1 + e
		copy(dst[point+1:], dst[point:])
		dst[point] = '.'
		return dst
	default: // 0.00ddd
		zeros := -e - n + 2
		dst = appendZeros(dst, zeros)
		copy(dst[from+zeros:], dst[from:from+n])
		for i := from; i < from+zeros; i++ {
			dst[i] = '0'
		}
		dst[from+1] = '.'
		return dst
	}
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// walk validates the array or object at p and returns the position behind it.
// Unless quiet, it looks for names that an object has twice and appends the
// canonical form to s.canon; quiet is for text that was walked before.
func (s *scanner) walk(p, depth int, paths *object, quiet bool) (int, fault) {
	if depth > MaxDepth {
		return s.fail(p, fTooDeep)
	}
	if s.data[p] == '[' {
		return s.walkArray(p, depth, quiet)
	}
	return s.walkObject(p, depth, paths, quiet)
}

// value walks any value.
func (s *scanner) value(p, depth int, paths *object, quiet bool) (int, fault) {
	var t token
	p, f := s.scalar(p, &t)
	if f != ok {
		return p, f
	}
	if t.kind >= kArr {
		return s.walk(p, depth, paths, quiet)
	}
	if !quiet {
		s.canon = appendCanonical(s.canon, &t)
	}
	return p, ok
}

func (s *scanner) walkArray(p, depth int, quiet bool) (int, fault) {
	if !quiet {
		s.canon = append(s.canon, '[')
	}
	p = s.space(p + 1)
	if p < len(s.data) && s.data[p] == ']' {
		return p + 1, ok
	}
	for {
		from := len(s.canon)
		if !quiet {
			s.canon = append(s.canon, 0, 0, 0, 0)
		}
		var f fault
		if p, f = s.value(p, depth+1, nil, quiet); f != ok {
			return p, f
		}
		if !quiet {
			binary.LittleEndian.PutUint32(s.canon[from:], uint32(len(s.canon)-from-4))
		}
		var more bool
		if p, more, f = s.next(p, ']'); f != ok || !more {
			return p, f
		}
	}
}

func (s *scanner) walkObject(p, depth int, paths *object, quiet bool) (int, fault) {
	var id, members uint32
	var sum uint64
	head := len(s.canon)
	if !quiet {
		id = s.names.object()
		s.canon = append(s.canon, '{', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	p = s.space(p + 1)
	more := p >= len(s.data) || s.data[p] != '}'
	if !more {
		p++
	}
	for more {
		var name token
		var f fault
		at := p
		if p, f = s.name(p, &name); f != ok {
			return p, f
		}
		if !quiet && !s.names.add(id, name.str) {
			return s.fail(at, fDuplicate)
		}
		fl := paths.lookup(name.str)
		from := len(s.canon)
		if p, f = s.value(p, depth+1, fl.paths(), quiet); f != ok {
			return p, f
		}
		if !quiet {
			if fl == nil || !fl.silent {
				sum += s.hasher.Field(view(name.str), s.canon[from:])
				members++
			}
			s.canon = s.canon[:from]
		}
		if p, more, f = s.next(p, '}'); f != ok {
			return p, f
		}
	}
	if !quiet {
		binary.LittleEndian.PutUint32(s.canon[head+1:], members)
		binary.LittleEndian.PutUint64(s.canon[head+5:], sum)
	}
	return p, ok
}

// name reads a member's name and the colon, and returns where its value
// begins.
func (s *scanner) name(p int, t *token) (int, fault) {
	if p >= len(s.data) || s.data[p] != '"' {
		return s.fail(p, fSyntax)
	}
	p, f := s.str(p, t)
	if f != ok {
		return p, f
	}
	if p = s.space(p); p >= len(s.data) || s.data[p] != ':' {
		return s.fail(p, fSyntax)
	}
	return s.space(p + 1), ok
}

// next steps over the comma or the closing bracket behind an element. more
// tells that an element must follow, at the position returned.
func (s *scanner) next(p int, closing byte) (_ int, more bool, _ fault) {
	p = s.space(p)
	if p < len(s.data) {
		switch s.data[p] {
		case closing:
			return p + 1, false, ok
		case ',':
			return s.space(p + 1), true, ok
		}
	}
	p, f := s.fail(p, fSyntax)
	return p, false, f
}

// view is b as a string, for callees that do not keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
