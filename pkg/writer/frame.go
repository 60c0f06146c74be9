package writer

import (
	"fmt"
	"io"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
)

// frameSize is how much of a block is compressed at once; it is what ClickHouse's own client does.
const frameSize = 1 << 20

// frameWriter collects bytes into frames. Only one frame and the column that is being encoded are held, not the block a second and a third time.
type frameWriter struct {
	to     io.Writer
	frames *compress.Writer // nil: bytes leave as they are
	buf    []byte
}

func (w *frameWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if w.frames == nil && len(w.buf) == 0 && len(p) >= frameSize {
			_, err := w.to.Write(p)
			return n, err
		}
		take := min(len(p), frameSize-len(w.buf))
		w.buf = append(w.buf, p[:take]...)
		p = p[take:]
		if len(w.buf) == frameSize {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (w *frameWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	data := w.buf
	w.buf = w.buf[:0]
	if w.frames != nil {
		if err := w.frames.Compress(data); err != nil {
			return err
		}
		data = w.frames.Data
	}
	_, err := w.to.Write(data)
	return err
}

// prepareBlock does what can fail before the first byte leaves.
func prepareBlock(input proto.Input) error {
	rows := input[0].Data.Rows()
	for _, column := range input {
		if n := column.Data.Rows(); n != rows {
			return fmt.Errorf("column %s has %d rows, %s has %d", column.Name, n, input[0].Name, rows)
		}
		if p, ok := column.Data.(proto.Preparable); ok {
			if err := p.Prepare(); err != nil {
				return fmt.Errorf("column %s: %w", column.Name, err)
			}
		}
	}
	return nil
}

// writeBlock encodes a prepared block column by column.
func (c *conn) writeBlock(input proto.Input) error {
	b := proto.Block{Columns: len(input), Rows: input[0].Data.Rows(), Info: proto.BlockInfo{BucketNum: -1}}
	c.columns.ChainBuffer(func(buf *proto.Buffer) { b.EncodeAware(buf, c.version) })
	for _, column := range input {
		c.columns.ChainBuffer(func(buf *proto.Buffer) { column.EncodeStart(buf, c.version) })
		if state, ok := column.Data.(proto.StateEncoder); ok {
			c.columns.ChainBuffer(state.EncodeState)
		}
		column.Data.WriteColumn(c.columns)
		if _, err := c.columns.Flush(); err != nil {
			return err
		}
	}
	return c.out.flush()
}
