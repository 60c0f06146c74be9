package decode

import (
	"fmt"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// column holds the values of one column of a block, in the form in which the
// native protocol sends them where that is possible.
type column interface {
	proto.ColInput
	proto.ColResult

	// appendToken appends the value. After a fault the column may hold parts
	// of it: the caller truncates.
	appendToken(t *token, s *scanner) fault
	// appendZero appends the type's own default.
	appendZero()
	// appendFrom appends row i of another column of the same type.
	appendFrom(src column, i int)
	truncate(n int)
	keep(sel []bool)
	// size is the number of bytes that the rows take.
	size() int
	// appendKey appends the canonical form of row i (see key.go); false means
	// that it is NULL.
	appendKey(dst []byte, i int) ([]byte, bool)
}

// timed is implemented by columns whose values are instants or days.
type timed interface {
	// unixMilli returns row i in milliseconds, rounded down.
	unixMilli(i int) int64
}

// stamped is implemented by columns that take Kafka's timestamp.
type stamped interface {
	// appendMilli appends an instant at the column's precision, rounded down.
	appendMilli(ms int64) fault
}

// stampedColumn returns c, or nil where it takes the timestamp as a number.
func stampedColumn(c column) stamped {
	inner := c
	if n, is := c.(*nullCol); is {
		inner = n.val
	}
	if _, is := inner.(stamped); !is {
		return nil
	}
	return c.(stamped)
}

// setup is what columns take over from the plan.
type setup struct {
	loc       *time.Location // of the server
	lax, zero bool           // as in JSON, for members of a Tuple
	path      string         // of the value in the record
}

// newColumn returns an empty column. A type that is not supported is an error.
func newColumn(t *typeName, set setup) (column, error) {
	t, err := t.plain()
	if err != nil {
		return nil, err
	}
	typ := proto.ColumnType(t.text)
	switch t.name {
	case "Int8":
		return newInt[int8](typ, 1<<7-1, 1<<7), nil
	case "Int16":
		return newInt[int16](typ, 1<<15-1, 1<<15), nil
	case "Int32":
		return newInt[int32](typ, 1<<31-1, 1<<31), nil
	case "Int64":
		return newInt[int64](typ, 1<<63-1, 1<<63), nil
	case "UInt8":
		return newInt[uint8](typ, 1<<8-1, 0), nil
	case "UInt16":
		return newInt[uint16](typ, 1<<16-1, 0), nil
	case "UInt32":
		return newInt[uint32](typ, 1<<32-1, 0), nil
	case "UInt64":
		return newInt[uint64](typ, 1<<64-1, 0), nil
	case "Int128", "UInt128", "Int256", "UInt256":
		return newWide(typ, t.name), nil
	case "BFloat16":
		return &bfloatCol{vec[uint16]{typ: typ}}, nil
	case "Float32":
		return &floatCol[float32]{vec: vec[float32]{typ: typ}, bits: 32}, nil
	case "Float64":
		return &floatCol[float64]{vec: vec[float64]{typ: typ}, bits: 64}, nil
	case "Bool":
		return &boolCol{vec[uint8]{typ: typ}}, nil
	case "String":
		return &strCol{typ: typ}, nil
	case "FixedString":
		n, err := t.number(0, 1, 1<<20)
		return &fixedStrCol{typ: typ, n: n}, err
	case "Decimal", "Decimal32", "Decimal64", "Decimal128", "Decimal256":
		return newDecimal(t)
	case "Date":
		return &dateCol[uint16]{vec: vec[uint16]{typ: typ}, max: 1<<16 - 1}, nil
	case "Date32":
		return &dateCol[int32]{vec: vec[int32]{typ: typ, zero: date32Min}, min: date32Min, max: date32Max}, nil
	case "DateTime", "DateTime64":
		return newTime(t, set.loc)
	case "Time", "Time64":
		return newHours(t)
	case "UUID":
		return &uuidCol{vec[uuid]{typ: typ}}, nil
	case "IPv4":
		return &ipv4Col{vec[uint32]{typ: typ}}, nil
	case "IPv6":
		return &ipv6Col{vec[[16]byte]{typ: typ}}, nil
	case "Enum8", "Enum16":
		return newEnum(t)
	case "LowCardinality":
		return newLowCard(t, set)
	case "Nullable", "Array", "Map":
		return newNested(t, set)
	case "Tuple":
		return newTuple(t, set)
	case "QBit":
		return newQBit(t, set)
	case "JSON":
		return newJSONColumn(t)
	}
	if intervals[t.name] {
		return newInt[int64](typ, 1<<63-1, 1<<63), nil
	}
	return nil, unsupported(t)
}

func newNested(t *typeName, set setup) (column, error) {
	var elems []column
	var types []*typeName
	for i := range t.args {
		e, err := t.elem(i)
		if err != nil {
			return nil, err
		}
		if e, err = e.plain(); err != nil {
			return nil, err
		}
		if t.name == "Nullable" && (e.name == "Nullable" || e.name == "Array" || e.name == "Map" || e.name == "LowCardinality") {
			return nil, fmt.Errorf("type %q is not supported", t.text)
		}
		c, err := newColumn(e, set)
		if err != nil {
			return nil, err
		}
		elems, types = append(elems, c), append(types, e)
	}
	typ := proto.ColumnType(t.text)
	switch {
	case t.name == "Map" && len(elems) == 2:
		return newMap(t, types[0], elems[0], elems[1])
	case t.name == "Nullable" && len(elems) == 1:
		return &nullCol{typ: typ, val: elems[0]}, nil
	case t.name == "Array" && len(elems) == 1:
		return &arrCol{typ: typ, val: elems[0]}, nil
	}
	return nil, fmt.Errorf("type %q has %d arguments", t.text, len(elems))
}
