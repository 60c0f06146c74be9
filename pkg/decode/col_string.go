package decode

import (
	"encoding/binary"
	"math"

	"github.com/ClickHouse/ch-go/proto"
)

// strCol keeps strings as the wire has them, length and bytes in a row, so
// that sending is one copy at most.
type strCol struct {
	typ  proto.ColumnType
	buf  []byte
	ends []uint32
}

// maxText bounds the text of one column of a block: ends are 32 bits.
const maxText = math.MaxInt32

func (c *strCol) Type() proto.ColumnType { return c.typ }
func (c *strCol) Rows() int              { return len(c.ends) }
func (c *strCol) Reset()                 { c.buf, c.ends = c.buf[:0], c.ends[:0] }
func (c *strCol) size() int              { return len(c.buf) + 4*len(c.ends) }

func (c *strCol) appendToken(t *token, _ *scanner) fault {
	if t.kind != kStr {
		return notString(t)
	}
	return c.appendBytes(t.str)
}

func notString(t *token) fault {
	if t.kind == kNull {
		return fNull
	}
	return fWrongType
}

func (c *strCol) appendBytes(s []byte) fault {
	if len(s) < 0x80 {
		c.buf = append(c.buf, byte(len(s)))
	} else {
		c.buf = binary.AppendUvarint(c.buf, uint64(len(s)))
	}
	c.buf = append(c.buf, s...)
	if len(c.buf) > maxText {
		return fTooLarge
	}
	c.ends = append(c.ends, uint32(len(c.buf)))
	return ok
}

func (c *strCol) start(i int) int {
	if i == 0 {
		return 0
	}
	return int(c.ends[i-1])
}

// at returns the content of row i.
func (c *strCol) at(i int) []byte {
	s := c.buf[c.start(i):c.ends[i]]
	if s[0] < 0x80 {
		return s[1:]
	}
	_, n := binary.Uvarint(s)
	return s[n:]
}

func (c *strCol) appendZero() { c.appendBytes(nil) }

func (c *strCol) appendFrom(src column, i int) { c.appendBytes(src.(*strCol).at(i)) }

func (c *strCol) truncate(n int) {
	c.ends = c.ends[:n]
	c.buf = c.buf[:c.start(n)]
}

func (c *strCol) keep(sel []bool) {
	w, from, to := 0, uint32(0), uint32(0)
	for i, k := range sel {
		end := c.ends[i]
		if k {
			to += uint32(copy(c.buf[to:], c.buf[from:end]))
			c.ends[w] = to
			w++
		}
		from = end
	}
	c.ends, c.buf = c.ends[:w], c.buf[:to]
}

func (c *strCol) appendKey(dst []byte, i int) ([]byte, bool) {
	return appendKeyText(dst, c.at(i)), true
}

func (c *strCol) EncodeColumn(b *proto.Buffer) { b.PutRaw(c.buf) }

func (c *strCol) WriteColumn(w *proto.Writer) {
	if len(c.buf) > 0 {
		w.ChainWrite(c.buf)
	}
}

func (c *strCol) DecodeColumn(r *proto.Reader, rows int) error {
	c.Reset()
	for range rows {
		n, err := r.StrLen()
		if err != nil {
			return err
		}
		c.buf = binary.AppendUvarint(c.buf, uint64(n))
		from := len(c.buf)
		c.buf = append(c.buf, make([]byte, n)...)
		if err := r.ReadFull(c.buf[from:]); err != nil {
			return err
		}
		c.ends = append(c.ends, uint32(len(c.buf)))
	}
	return nil
}

// fixedStrCol is FixedString(n). A shorter string is padded with zero bytes,
// which is what the type means by it; a longer one does not fit.
type fixedStrCol struct {
	typ proto.ColumnType
	n   int
	buf []byte
}

func (c *fixedStrCol) Type() proto.ColumnType { return c.typ }
func (c *fixedStrCol) Rows() int              { return len(c.buf) / c.n }
func (c *fixedStrCol) Reset()                 { c.buf = c.buf[:0] }
func (c *fixedStrCol) size() int              { return len(c.buf) }
func (c *fixedStrCol) at(i int) []byte        { return c.buf[i*c.n : (i+1)*c.n] }
func (c *fixedStrCol) truncate(n int)         { c.buf = c.buf[:n*c.n] }
func (c *fixedStrCol) appendZero()            { c.appendBytes(nil) }

func (c *fixedStrCol) appendToken(t *token, _ *scanner) fault {
	if t.kind != kStr {
		return notString(t)
	}
	return c.appendBytes(t.str)
}

func (c *fixedStrCol) appendBytes(s []byte) fault {
	if len(s) > c.n {
		return fRange
	}
	c.buf = append(c.buf, s...)
	for range c.n - len(s) {
		c.buf = append(c.buf, 0)
	}
	return ok
}

func (c *fixedStrCol) appendFrom(src column, i int) {
	c.appendBytes(src.(*fixedStrCol).at(i))
}

func (c *fixedStrCol) keep(sel []bool) {
	w := 0
	for i, k := range sel {
		if k {
			copy(c.at(w), c.at(i))
			w++
		}
	}
	c.truncate(w)
}

func (c *fixedStrCol) appendKey(dst []byte, i int) ([]byte, bool) {
	return appendKeyText(dst, trimZeros(c.at(i))), true
}

func trimZeros(s []byte) []byte {
	for len(s) > 0 && s[len(s)-1] == 0 {
		s = s[:len(s)-1]
	}
	return s
}

func (c *fixedStrCol) EncodeColumn(b *proto.Buffer) { b.PutRaw(c.buf) }

func (c *fixedStrCol) WriteColumn(w *proto.Writer) {
	if len(c.buf) > 0 {
		w.ChainWrite(c.buf)
	}
}

func (c *fixedStrCol) DecodeColumn(r *proto.Reader, rows int) error {
	c.buf = append(c.buf[:0], make([]byte, rows*c.n)...)
	return r.ReadFull(c.buf)
}
