package decode

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ClickHouse/ch-go/proto"
)

// uuid is a UUID as the wire has it: two halves, each little endian.
type uuid struct{ hi, lo uint64 }

// uuidCol takes the forms 8-4-4-4-12 and 32 hex digits, in either case.
type uuidCol struct{ vec[uuid] }

func (c *uuidCol) appendToken(t *token, _ *scanner) fault {
	if t.kind != kStr {
		return notString(t)
	}
	u, good := parseUUID(t.str)
	if !good {
		return fBadValue
	}
	c.v = append(c.v, u)
	return ok
}

func parseUUID(s []byte) (uuid, bool) {
	if len(s) != 32 && len(s) != 36 {
		return uuid{}, false
	}
	var b [16]byte
	n := 0
	for i := 0; i < len(s); {
		if len(s) == 36 && (i == 8 || i == 13 || i == 18 || i == 23) {
			if s[i] != '-' {
				return uuid{}, false
			}
			i++
			continue
		}
		h, l := hexDigit(s[i]), hexDigit(s[i+1])
		if h > 15 || l > 15 {
			return uuid{}, false
		}
		b[n] = h<<4 | l
		n++
		i += 2
	}
	return uuid{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}, true
}

func (c *uuidCol) appendKey(dst []byte, i int) ([]byte, bool) {
	dst = append(dst, keyUUID)
	dst = binary.BigEndian.AppendUint64(dst, c.v[i].hi)
	return binary.BigEndian.AppendUint64(dst, c.v[i].lo), true
}

type ipv4Col struct{ vec[uint32] }

func (c *ipv4Col) appendToken(t *token, _ *scanner) fault {
	a, f := parseIP(t)
	if f != ok {
		return f
	}
	if !a.Is4() {
		return fBadValue
	}
	b := a.As4()
	c.v = append(c.v, binary.BigEndian.Uint32(b[:]))
	return ok
}

func (c *ipv4Col) appendKey(dst []byte, i int) ([]byte, bool) {
	dst = append(dst, keyIP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff)
	return binary.BigEndian.AppendUint32(dst, c.v[i]), true
}

// ipv6Col takes an IPv4 address as ::ffff:a.b.c.d, as ClickHouse does.
type ipv6Col struct{ vec[[16]byte] }

func (c *ipv6Col) appendToken(t *token, _ *scanner) fault {
	a, f := parseIP(t)
	if f != ok {
		return f
	}
	c.v = append(c.v, a.As16())
	return ok
}

func (c *ipv6Col) appendKey(dst []byte, i int) ([]byte, bool) {
	dst = append(dst, keyIP)
	return append(dst, c.v[i][:]...), true
}

func parseIP(t *token) (netip.Addr, fault) {
	if t.kind != kStr {
		return netip.Addr{}, notString(t)
	}
	if len(t.str) > 45 {
		return netip.Addr{}, fBadValue
	}
	a, err := netip.ParseAddr(view(t.str))
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, fBadValue
	}
	return a, ok
}

// enumCol takes a label as a string and a declared value as a number.
type enumCol[T int8 | int16] struct {
	vec[T]
	values map[string]T
	labels map[T]string
}

func newEnum(t *typeName) (column, error) {
	typ := proto.ColumnType(t.text)
	if t.name == "Enum8" {
		c := &enumCol[int8]{vec: vec[int8]{typ: typ}}
		return c, c.declare(t, 8)
	}
	c := &enumCol[int16]{vec: vec[int16]{typ: typ}}
	return c, c.declare(t, 16)
}

func (c *enumCol[T]) declare(t *typeName, bits int) error {
	c.values, c.labels = map[string]T{}, map[T]string{}
	for i, a := range t.args {
		v, err := strconv.ParseInt(a.value, 10, bits)
		if err != nil || !a.quoted {
			return fmt.Errorf("type %q: bad label %d", t.text, i+1)
		}
		c.values[a.text] = T(v)
		c.labels[T(v)] = a.text
		// The default of an Enum is its smallest value.
		if i == 0 || T(v) < c.zero {
			c.zero = T(v)
		}
	}
	if len(c.values) == 0 || len(c.values) != len(t.args) || len(c.labels) != len(t.args) {
		return fmt.Errorf("type %q: labels are missing or not unique", t.text)
	}
	return nil
}

func (c *enumCol[T]) appendToken(t *token, _ *scanner) fault {
	switch t.kind {
	case kStr:
		v, known := c.values[string(t.str)]
		if !known {
			return fBadValue
		}
		c.v = append(c.v, v)
		return ok
	case kNum:
		m, f := t.scaled(0)
		if f != ok {
			return f
		}
		v := int64(m.lo)
		if t.neg {
			v = -v
		}
		if _, known := c.labels[T(v)]; !known || m.hi != 0 || m.lo > 1<<15 || int64(T(v)) != v {
			return fRange
		}
		c.v = append(c.v, T(v))
		return ok
	}
	return notString(t)
}

func (c *enumCol[T]) appendKey(dst []byte, i int) ([]byte, bool) {
	label := c.labels[c.v[i]]
	dst = append(dst, keyText)
	dst = binary.AppendUvarint(dst, uint64(len(label)))
	return append(dst, label...), true
}
