package decode

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The canonical form of a key, version 1. It is what the 128-bit key hashes,
// so it is a persistent format: never change a byte of it, add a version.
//
//	version (1 byte, 1), then for each key column in the route's order a class
//	byte and
//	  integer >= 0   01  n, n bytes: magnitude, little endian, no zero byte at
//	                     its end (0 has n = 0); the same for every width
//	  integer < 0    02  as above
//	  Bool           03  0 or 1
//	  text           04  uvarint length, bytes: String, FixedString without
//	                     its padding, Enum by label, LowCardinality of these
//	  decimal >= 0   05  s, n, n bytes: value = magnitude / 10^s, s as small as
//	                     it goes, so 1.50 at any scale is 15 and s = 1
//	  decimal < 0    06  as above
//	  Float          07  8 bytes, IEEE 754 double, little endian; -0 is 0
//	  instant        08  seconds since 1970 (8 bytes), nanoseconds (4 bytes),
//	                     little endian: DateTime and DateTime64 of any precision
//	  day            09  days since 1970 (4 bytes, little endian)
//	  UUID           0a  16 bytes in the order of its text
//	  IP             0b  16 bytes; IPv4 as ::ffff:a.b.c.d
//	  time           0c  seconds (8 bytes, two's complement) and nanoseconds (4
//	                     bytes) above them, little endian: Time and Time64 of
//	                     any precision; -00:00:00.1 is -1 s and 900000000 ns
//
// Each form tells its own length, so ("a-b", "c") differs from ("a", "b-c").
// Widening a column (UInt32 to UInt64 or Int256, Decimal(9,2) to Decimal(76,4),
// BFloat16 to Float64, DateTime to DateTime64(3), Time to Time64(3), Date to
// Date32, FixedString or Enum to String, IPv4 to IPv6, any of these to Nullable
// or LowCardinality) changes no key.
const keyVersion = 1

const (
	keyInt        = 0x01
	keyIntNeg     = 0x02
	keyBool       = 0x03
	keyText       = 0x04
	keyDecimal    = 0x05
	keyDecimalNeg = 0x06
	keyFloat      = 0x07
	keyInstant    = 0x08
	keyDay        = 0x09
	keyUUID       = 0x0a
	keyIP         = 0x0b
	keyTime       = 0x0c
)

func appendKeyInt(dst []byte, neg bool, m uint64) []byte {
	class := byte(keyInt)
	if neg {
		class = keyIntNeg
	}
	n := (bits.Len64(m) + 7) / 8
	dst = append(dst, class, byte(n))
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, m)
	return dst[:from+n]
}

func appendKeyText(dst, s []byte) []byte {
	dst = append(dst, keyText)
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendKeyDecimal(dst []byte, neg bool, m u128, scale int) []byte {
	for scale > 0 {
		q, r := m.div10()
		if r != 0 {
			break
		}
		m = q
		scale--
	}
	class := byte(keyDecimal)
	if neg {
		class = keyDecimalNeg
	}
	n := (bits.Len64(m.lo) + 7) / 8
	if m.hi != 0 {
		n = 8 + (bits.Len64(m.hi)+7)/8
	}
	dst = append(dst, class, byte(scale), byte(n))
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, m.lo)
	dst = binary.LittleEndian.AppendUint64(dst, m.hi)
	return dst[:from+n]
}

// appendKeyWide is appendKeyInt for what may pass 64 bits.
func appendKeyWide(dst []byte, neg bool, m u256) []byte {
	class := byte(keyInt)
	if neg {
		class = keyIntNeg
	}
	n := m.bytes()
	return appendMagnitude(append(dst, class, byte(n)), m, n)
}

// appendKeyDecimal256 is appendKeyDecimal for what may pass 128 bits.
func appendKeyDecimal256(dst []byte, neg bool, m u256, scale int) []byte {
	for scale > 0 {
		q, r := m.div10()
		if r != 0 {
			break
		}
		m = q
		scale--
	}
	class := byte(keyDecimal)
	if neg {
		class = keyDecimalNeg
	}
	n := m.bytes()
	return appendMagnitude(append(dst, class, byte(scale), byte(n)), m, n)
}

func appendMagnitude(dst []byte, m u256, n int) []byte {
	from := len(dst)
	for _, w := range m {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst[:from+n]
}

func (a u128) div10() (u128, uint64) {
	hi, r := bits.Div64(0, a.hi, 10)
	lo, r := bits.Div64(r, a.lo, 10)
	return u128{hi, lo}, r
}

func appendKeyFloat(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // -0 is the same value
	}
	dst = append(dst, keyFloat)
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

func appendKeyInstant(dst []byte, sec int64, nano uint32) []byte {
	dst = append(dst, keyInstant)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(sec))
	return binary.LittleEndian.AppendUint32(dst, nano)
}

func appendKeyTime(dst []byte, sec int64, nano uint32) []byte {
	dst = append(dst, keyTime)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(sec))
	return binary.LittleEndian.AppendUint32(dst, nano)
}

func appendKeyDay(dst []byte, day int32) []byte {
	dst = append(dst, keyDay)
	return binary.LittleEndian.AppendUint32(dst, uint32(day))
}
