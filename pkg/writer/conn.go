package writer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"go.opentelemetry.io/otel/trace"
)

// conn is one connection of the native protocol, used by one exchange at a time.
//
// The packets are ch-go's, the order of the exchange is kept here and not by ch.Client, for three reasons. The outcome of an insert hangs on whether the block has begun
// to leave, which only the sender knows. ch.Client sends a Cancel when its context ends, and a cancelled insert can leave the table written and its views not: here nothing is ever
// cancelled, the connection is just closed. And the block goes out in frames of 1 MiB instead of being held three times.
type conn struct {
	raw     net.Conn
	addr    string
	reader  *proto.Reader
	hello   proto.ServerHello
	version int

	compression proto.Compression
	wire        *bufio.Writer
	buf         proto.Buffer  // packets to be written
	out         *frameWriter  // where blocks go
	columns     *proto.Writer // encodes columns into out

	silence time.Duration // see expect

	reused bool // it has served an exchange before
	broken bool // it must not serve another one
	idle   time.Time
}

// request is one statement with what goes along with it.
type request struct {
	body     string
	id       string
	settings []proto.Setting
	// settingsFor makes the settings once it is known which server gets the statement.
	settingsFor func(*facts) []proto.Setting
	input       proto.Input            // one block for an INSERT
	external    map[string]proto.Input // external tables
	// result takes the blocks of a SELECT; onBlock, when set, is called after each one that has rows.
	result  proto.Result
	onBlock func(rows int) error
	// header is called with the columns that the server expects, before the input leaves.
	header func(proto.ColInfoInput) error
	// patient: the server may be silent for as long as the context allows. Inserts are when theirs has a deadline: views may take their time.
	patient bool
	// probing: what is written is thrown away, so a connection that is alive after the refusal may go on.
	probing bool
}

// stage tells how far an exchange came. It decides what a failure means.
type stage struct {
	answered bool // the server has sent something since the query left
	sent     bool // the block has begun to leave: the server may have it
}

// exchange runs one statement. The connection stays usable only if it returns nil or an exception of the server.
func (c *conn) exchange(ctx context.Context, q *request) (st stage, err error) {
	if err := ctx.Err(); err != nil {
		return st, err
	}
	stop, end := c.guard(ctx)
	finished := false
	defer func() {
		c.reused = true
		if !stop() || !finished {
			c.broken = true
		}
		end()
		// The reason for a broken exchange is the context, not the deadline that carried it to the socket.
		var timeout net.Error
		if err != nil && errors.As(err, &timeout) && timeout.Timeout() {
			_, bounded := ctx.Deadline()
			if err = context.Cause(ctx); err == nil && bounded {
				err = context.DeadlineExceeded
			} else if err == nil {
				err = fmt.Errorf("no word for %s: %w", c.silence, context.DeadlineExceeded)
			}
		}
	}()
	expect := func() {}
	if _, bounded := ctx.Deadline(); !q.patient && (q.input == nil || !bounded) {
		expect = func() { c.expect(ctx, c.silence) }
	}
	expect()
	if err := c.sendQuery(q); err != nil {
		return st, c.orException(err, &st, &finished)
	}
	for {
		expect()
		code, err := c.reader.UVarInt()
		if err != nil {
			return st, err
		}
		st.answered = true
		switch packet := proto.ServerCode(code); packet {
		case proto.ServerCodeEndOfStream:
			finished = true
			return st, nil
		case proto.ServerCodeException:
			err := c.exception()
			var ex *Exception
			// After a failed insert the connection isn't trusted again.
			finished = errors.As(err, &ex) && (!st.sent || q.probing)
			return st, err
		case proto.ServerCodeData:
			if q.input != nil && !st.sent {
				if err := c.answerHeader(q, &st); err != nil {
					return st, c.orException(err, &st, &finished)
				}
				continue
			}
			if err := c.data(q); err != nil {
				return st, err
			}
		default:
			if err := c.skip(packet); err != nil {
				return st, err
			}
		}
	}
}

// guard lets the context end reads and writes. stop reports whether it hasn't.
func (c *conn) guard(ctx context.Context) (stop func() bool, end func()) {
	deadline, _ := ctx.Deadline()
	_ = c.raw.SetDeadline(deadline)
	stop = context.AfterFunc(ctx, func() { _ = c.raw.SetDeadline(time.Unix(1, 0)) })
	return stop, func() { stop() }
}

// expect bounds how long the server may be silent before its next packet: it tells of the progress of a read every 100 ms. A connection that has lost its way is silent for
// good, and the contexts of questions that are repeated until they are answered never end.
func (c *conn) expect(ctx context.Context, within time.Duration) {
	until := time.Now().Add(within)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	_ = c.raw.SetDeadline(until)
	if ctx.Err() != nil { // what guard had set was overwritten
		_ = c.raw.SetDeadline(time.Unix(1, 0))
	}
}

// orException prefers what the server had to say over the write error that it caused by closing.
func (c *conn) orException(writeErr error, st *stage, finished *bool) error {
	var local *inputError
	if errors.As(writeErr, &local) {
		return writeErr
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(time.Second))
	for {
		code, err := c.reader.UVarInt()
		if err != nil {
			return writeErr
		}
		st.answered = true
		if packet := proto.ServerCode(code); packet == proto.ServerCodeException {
			*finished = false
			return c.exception()
		} else if err := c.skip(packet); err != nil {
			return writeErr
		}
	}
}

func (c *conn) sendQuery(q *request) error {
	c.buf.Reset()
	proto.Query{
		ID: q.id, Body: q.body, Stage: proto.StageComplete, Compression: c.compression, Settings: q.settings,
		Info: proto.ClientInfo{
			ProtocolVersion: c.version, Major: clientMajor, Minor: clientMinor, Interface: proto.InterfaceTCP, Query: proto.ClientQueryInitial,
			InitialQueryID: q.id, InitialAddress: c.raw.LocalAddr().String(), ClientName: clientName, Span: trace.SpanContext{},
		},
	}.EncodeAware(&c.buf, c.version)
	for name, table := range q.external {
		if err := c.putBlock(name, table); err != nil {
			return err
		}
	}
	if err := c.putBlock("", nil); err != nil { // the end of external tables
		return err
	}
	return c.push()
}

// answerHeader reads the columns that an INSERT expects and sends the block.
func (c *conn) answerHeader(q *request, st *stage) error {
	var columns proto.ColInfoInput
	if _, err := c.decodeBlock(&columns, true); err != nil {
		return err
	}
	for _, want := range columns {
		for _, have := range q.input {
			if infer, ok := have.Data.(proto.Inferable); ok && have.Name == want.Name {
				if err := infer.Infer(want.Type); err != nil {
					return &inputError{fmt.Errorf("column %s of type %s: %w", want.Name, want.Type, err)}
				}
			}
		}
	}
	if q.header != nil {
		if err := q.header(columns); err != nil {
			return &inputError{err}
		}
	}
	if err := prepareBlock(q.input); err != nil {
		return &inputError{err}
	}
	st.sent = true
	c.buf.Reset()
	proto.ClientCodeData.Encode(&c.buf)
	proto.ClientData{}.EncodeAware(&c.buf, c.version)
	if err := c.put(); err != nil {
		return err
	}
	if err := c.writeBlock(q.input); err != nil {
		return err
	}
	if err := c.putBlock("", nil); err != nil { // the end of the data
		return err
	}
	return c.push()
}

// putBlock sends what is in the buffer and a data packet behind it.
func (c *conn) putBlock(table string, input proto.Input) error {
	proto.ClientCodeData.Encode(&c.buf)
	proto.ClientData{TableName: table}.EncodeAware(&c.buf, c.version)
	if err := c.put(); err != nil {
		return err
	}
	if len(input) > 0 {
		if err := prepareBlock(input); err != nil {
			return &inputError{err}
		}
		return c.writeBlock(input)
	}
	c.columns.ChainBuffer(func(buf *proto.Buffer) { proto.Block{}.EncodeAware(buf, c.version) })
	if _, err := c.columns.Flush(); err != nil {
		return err
	}
	return c.out.flush()
}

// put hands what is in the buffer over to the wire; push lets it leave.
func (c *conn) put() error {
	_, err := c.wire.Write(c.buf.Buf)
	c.buf.Reset()
	return err
}

func (c *conn) push() error {
	if err := c.put(); err != nil {
		return err
	}
	return c.wire.Flush()
}

// data reads one block of a result.
func (c *conn) data(q *request) error {
	result := q.result
	if result == nil {
		result = &proto.ColInfoInput{} // a header without rows; rows would be an error
	}
	rows, err := c.decodeBlock(result, true)
	if err != nil {
		return err
	}
	if rows > 0 && q.onBlock != nil {
		return q.onBlock(rows)
	}
	return nil
}

func (c *conn) decodeBlock(result proto.Result, compressible bool) (rows int, err error) {
	if proto.FeatureTempTables.In(c.version) {
		if _, err := c.reader.Str(); err != nil {
			return 0, err
		}
	}
	if compressible && c.compression == proto.CompressionEnabled {
		c.reader.EnableCompression()
		defer c.reader.DisableCompression()
	}
	var b proto.Block
	if err := b.DecodeBlock(c.reader, c.version, result); err != nil {
		return 0, err
	}
	return b.Rows, nil
}

// skip reads packets that accompany a result.
func (c *conn) skip(packet proto.ServerCode) error {
	switch packet {
	case proto.ServerCodeProgress:
		var p proto.Progress
		return p.DecodeAware(c.reader, c.version)
	case proto.ServerCodeProfile:
		return (&proto.Profile{}).DecodeAware(c.reader, c.version)
	case proto.ServerCodeTableColumns:
		return (&proto.TableColumns{}).DecodeAware(c.reader, c.version)
	case proto.ServerProfileEvents:
		_, err := c.decodeBlock((&proto.ProfileEvents{}).Result(), false)
		return err
	case proto.ServerCodeLog:
		var logs proto.Logs
		_, err := c.decodeBlock(logs.Result(), false)
		return err
	case proto.ServerCodeTotals, proto.ServerCodeExtremes:
		var columns proto.Results
		_, err := c.decodeBlock(columns.Auto(), true)
		return err
	default:
		return fmt.Errorf("unexpected packet %d", packet)
	}
}

func (c *conn) exception() error {
	var e proto.Exception
	if err := e.DecodeAware(c.reader, c.version); err != nil {
		return fmt.Errorf("read exception: %w", err)
	}
	return &Exception{Code: int32(e.Code), Message: cleanMessage(e.Message), Replica: c.addr}
}

func (c *conn) close() {
	c.broken = true
	_ = c.raw.Close()
}

// inputError is a fault of the data or of the caller, met before anything of it left.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// Exception is an error that the server reported.
type Exception struct {
	Code    int32
	Message string
	Replica string
}

func (e *Exception) Error() string {
	return fmt.Sprintf("clickhouse %s: %s (code %d)", e.Replica, e.Message, e.Code)
}

// cleanMessage drops what helps nobody outside the server: the exception's class, repeated.
func cleanMessage(text string) string {
	return string(bytes.TrimSpace(bytes.ReplaceAll([]byte(text), []byte("DB::Exception: "), nil)))
}
