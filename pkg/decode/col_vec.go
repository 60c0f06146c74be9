package decode

import (
	"unsafe"

	"github.com/ClickHouse/ch-go/proto"
)

// vec is what all columns of fixed width share: a slice that is sent as it
// lies in memory (the hosts are little endian, see NewJSON).
type vec[T any] struct {
	typ  proto.ColumnType
	v    []T
	zero T
}

func (c *vec[T]) Type() proto.ColumnType { return c.typ }
func (c *vec[T]) Rows() int              { return len(c.v) }
func (c *vec[T]) Reset()                 { c.v = c.v[:0] }
func (c *vec[T]) appendZero()            { c.v = append(c.v, c.zero) }
func (c *vec[T]) truncate(n int)         { c.v = c.v[:n] }
func (c *vec[T]) size() int              { return len(c.v) * int(unsafe.Sizeof(c.zero)) }
func (c *vec[T]) base() *vec[T]          { return c }

// at and appendBytes are for a LowCardinality, to which a value is its bytes.
func (c *vec[T]) at(i int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&c.v[i])), int(unsafe.Sizeof(c.zero)))
}

func (c *vec[T]) appendBytes(b []byte) fault {
	c.v = append(c.v, c.zero)
	copy(c.at(len(c.v)-1), b)
	return ok
}

func (c *vec[T]) appendFrom(src column, i int) {
	c.v = append(c.v, src.(interface{ base() *vec[T] }).base().v[i])
}

func (c *vec[T]) keep(sel []bool) { c.v = keepValues(c.v, sel) }

// keepValues moves the selected values to the front, without a branch: which
// rows are kept is as good as random.
func keepValues[T any](v []T, sel []bool) []T {
	w := 0
	for i, k := range sel {
		v[w] = v[i]
		if k {
			w++
		}
	}
	return v[:w]
}

func (c *vec[T]) raw() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c.v))), c.size())
}

func (c *vec[T]) EncodeColumn(b *proto.Buffer) { b.PutRaw(c.raw()) }

func (c *vec[T]) WriteColumn(w *proto.Writer) {
	if len(c.v) > 0 {
		w.ChainWrite(c.raw())
	}
}

func (c *vec[T]) DecodeColumn(r *proto.Reader, rows int) error {
	if cap(c.v) < rows {
		c.v = make([]T, rows)
	}
	c.v = c.v[:rows]
	return r.ReadFull(c.raw())
}
