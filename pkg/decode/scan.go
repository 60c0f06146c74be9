package decode

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest, the record's own object
// included.
const MaxDepth = 64

type kind uint8

const (
	kNull kind = iota
	kFalse
	kTrue
	kNum
	kStr
	kArr
	kObj
)

var kindNames = [...]string{"null", "false", "true", "a number", "a string", "an array", "an object"}

// token is one JSON value. Its slices lie in the record or in the scanner's
// scratch space and are good until the next record.
type token struct {
	kind kind
	// A number is (-1)^neg * mant * 10^exp, unless big: then its digits do
	// not fit mant and are in raw.
	neg, big bool
	// plain: raw is the canonical form already.
	plain bool
	exp   int32
	mant  uint64
	// raw is the text of a number, an array or an object; of a string without
	// escapes, its opening quote and content.
	raw []byte
	// str is the content of a string.
	str []byte
}

func (t *token) looksLikeNumberOrTime() bool {
	digits := 0
	for _, c := range t.str {
		switch c {
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			digits++
		case '-', '+', ':', '.', 'T', 'Z', 'e', 'E', ' ':
		default:
			return false
		}
	}
	return digits > 0
}

// scanner reads JSON values out of the bytes of one record. It belongs to a
// Block.
type scanner struct {
	data   []byte
	text   []byte // unescaped strings of this record
	canon  []byte // canonical forms, see canonical.go
	names  nameSet
	hasher Hasher
	// at is where a fault was met, for the message.
	at int
	// nest holds a token for each level of arrays and objects being taken
	// apart.
	nest  []*token
	level int
	// key is room for the key of a Map.
	key []byte
	// member is the path, in a Tuple, of the member that has a fault.
	member string
	// unknown counts a member that no element of a Tuple takes.
	unknown func(parent string, name []byte)
}

// inside notes the member, or the place, that a fault is in.
func (s *scanner) inside(member string, f fault) fault {
	if s.member != "" {
		member += "." + s.member
	}
	s.member = member
	return f
}

func (s *scanner) push() *token {
	if s.level == len(s.nest) {
		s.nest = append(s.nest, new(token))
	}
	s.level++
	return s.nest[s.level-1]
}

func (s *scanner) pop() { s.level-- }

func (s *scanner) start(data []byte) {
	s.data = data
	s.text = s.text[:0]
	s.canon = s.canon[:0]
	s.names.reset()
	s.member = ""
}

func (s *scanner) space(p int) int {
	for p < len(s.data) {
		switch s.data[p] {
		case ' ', '\n', '\r', '\t':
			p++
		default:
			return p
		}
	}
	return p
}

// scalar reads the string, number or literal at p. Arrays and objects are
// told by their kind only and not consumed.
func (s *scanner) scalar(p int, t *token) (int, fault) {
	if p >= len(s.data) {
		return s.fail(p, fSyntax)
	}
	switch c := s.data[p]; {
	case c == '"':
		return s.str(p, t)
	case c == '-' || c-'0' <= 9:
		return s.num(p, t)
	case c == '{':
		t.kind = kObj
		return p, ok
	case c == '[':
		t.kind = kArr
		return p, ok
	case c == 't':
		return s.literal(p, t, "true", kTrue)
	case c == 'f':
		return s.literal(p, t, "false", kFalse)
	case c == 'n':
		return s.literal(p, t, "null", kNull)
	}
	return s.fail(p, fSyntax)
}

func (s *scanner) fail(p int, f fault) (int, fault) {
	s.at = p
	return p, f
}

func (s *scanner) literal(p int, t *token, word string, k kind) (int, fault) {
	if len(s.data)-p < len(word) || string(s.data[p:p+len(word)]) != word {
		return s.fail(p, fSyntax)
	}
	t.kind, t.plain, t.raw = k, true, s.data[p:p+len(word)]
	return p + len(word), ok
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops marks, in the high bit of each byte, the bytes of w that end a run of
// plain text: quote, backslash and control characters. The lowest mark is
// exact; above it there may be false ones.
func stops(w uint64) uint64 {
	q := w ^ '"'*ones
	b := w ^ '\\'*ones
	return ((q-ones)&^q | (b-ones)&^b | (w-' '*ones)&^w) & highs
}

// str reads the string whose opening quote is at p.
func (s *scanner) str(p int, t *token) (int, fault) {
	data, start := s.data, p
	p++
	var seen uint64 // high bits: something was not ASCII
	for len(data)-p >= 8 {
		w := binary.LittleEndian.Uint64(data[p:])
		if m := stops(w); m != 0 {
			n := bits.TrailingZeros64(m) &^ 7
			seen |= w & (1<<n - 1)
			p += n >> 3
			if data[p] != '"' {
				return s.strSlow(start, p, t)
			}
			goto end
		}
		seen |= w
		p += 8
	}
	for ; ; p++ {
		if p >= len(data) {
			return s.fail(p, fSyntax)
		}
		c := data[p]
		if c == '"' {
			break
		}
		if c == '\\' || c < ' ' {
			return s.strSlow(start, p, t)
		}
		seen |= uint64(c)
	}
end:
	t.kind, t.plain = kStr, true
	t.raw = data[start:p]
	t.str = data[start+1 : p]
	if seen&highs != 0 && !utf8.Valid(t.str) {
		return s.fail(start, fUTF8)
	}
	return p + 1, ok
}

// strSlow reads a string with escapes; p is at the first of them.
func (s *scanner) strSlow(start, p int, t *token) (int, fault) {
	data := s.data
	from := len(s.text)
	s.text = append(s.text, data[start+1:p]...)
	for {
		if p >= len(data) {
			return s.fail(p, fSyntax)
		}
		switch c := data[p]; {
		case c == '"':
			t.kind, t.plain = kStr, false
			t.str = s.text[from:len(s.text):len(s.text)]
			if !utf8.Valid(t.str) {
				return s.fail(start, fUTF8)
			}
			return p + 1, ok
		case c < ' ':
			return s.fail(p, fSyntax)
		case c != '\\':
			s.text = append(s.text, c)
			p++
		default:
			var f fault
			if p, f = s.escape(p); f != ok {
				return s.fail(p, f)
			}
		}
	}
}

// escape appends what the escape sequence at p stands for.
func (s *scanner) escape(p int) (int, fault) {
	if len(s.data)-p < 2 {
		return p, fSyntax
	}
	c := s.data[p+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode(p)
	default:
		return p, fSyntax
	}
	s.text = append(s.text, c)
	return p + 2, ok
}

func (s *scanner) unicode(p int) (int, fault) {
	r, good := hex4(s.data, p+2)
	if !good {
		return p, fSyntax
	}
	n := p + 6
	if r >= 0xD800 && r < 0xE000 {
		// U+FFFD in its place would make two different ids one.
		if r >= 0xDC00 || len(s.data)-n < 6 || s.data[n] != '\\' || s.data[n+1] != 'u' {
			return p, fUTF8
		}
		low, good := hex4(s.data, n+2)
		if !good {
			return p, fSyntax
		}
		if low < 0xDC00 || low > 0xDFFF {
			return p, fUTF8
		}
		r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
		n += 6
	}
	s.text = utf8.AppendRune(s.text, r)
	return n, ok
}

func hex4(b []byte, p int) (rune, bool) {
	if len(b)-p < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[p : p+4] {
		d := hexDigit(c)
		if d > 15 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// maxExponent bounds the exponent of a number, far outside of every column, so
// that sums of exponents cannot overflow.
const maxExponent = 1_000_000_000

// num reads the number at p.
func (s *scanner) num(p int, t *token) (int, fault) {
	data, start := s.data, p
	neg := data[p] == '-'
	if neg {
		p++
	}
	first := p
	var mant uint64
	for p < len(data) {
		d := data[p] - '0'
		if d > 9 {
			break
		}
		mant = mant*10 + uint64(d)
		p++
	}
	digits := p - first
	if digits == 0 || digits > 1 && data[first] == '0' {
		return s.fail(p, fSyntax)
	}
	plain := true
	exp := 0
	if p < len(data) && data[p] == '.' {
		p++
		dot := p
		for p < len(data) {
			d := data[p] - '0'
			if d > 9 {
				break
			}
			mant = mant*10 + uint64(d)
			p++
		}
		if p == dot {
			return s.fail(p, fSyntax)
		}
		exp = dot - p
		digits += p - dot
		plain = data[p-1] != '0'
	}
	if p < len(data) && data[p]|0x20 == 'e' {
		var f fault
		var e int
		if p, e, f = s.exponent(p + 1); f != ok {
			return s.fail(p, f)
		}
		exp += e
		plain = false
	}
	t.kind, t.neg, t.big, t.exp = kNum, neg, false, int32(exp)
	t.raw = data[start:p]
	if digits > 19 {
		mant, t.big = mantissa(t.raw)
	}
	t.mant = mant
	t.plain = plain && len(t.raw) <= plainDigits && (mant != 0 || !neg)
	return p, ok
}

func (s *scanner) exponent(p int) (int, int, fault) {
	neg := false
	if p < len(s.data) && (s.data[p] == '-' || s.data[p] == '+') {
		neg = s.data[p] == '-'
		p++
	}
	first, e := p, 0
	for p < len(s.data) && s.data[p]-'0' <= 9 {
		if e = e*10 + int(s.data[p]-'0'); e > maxExponent {
			return p, 0, fExponent
		}
		p++
	}
	if p == first {
		return p, 0, fSyntax
	}
	if neg {
		e = -e
	}
	return p, e, ok
}

// mantissa reads all digits of raw up to an exponent, and tells when they pass
// 64 bits.
func mantissa(raw []byte) (m uint64, big bool) {
	for _, c := range raw {
		d := c - '0'
		if c|0x20 == 'e' {
			break
		}
		if d > 9 {
			continue
		}
		hi, lo := bits.Mul64(m, 10)
		lo, carry := bits.Add64(lo, uint64(d), 0)
		if hi != 0 || carry != 0 {
			return math.MaxUint64, true
		}
		m = lo
	}
	return m, false
}
