package dedup

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// The packed forms of version 1, which lua/*.lua read and write:
//
//	field  10: the low 2 bytes of Key.Hi, the 8 of Key.Lo; the high bits of
//	           Key.Hi choose group and bucket. Two keys are taken for one when
//	           all these agree: below 1e-13 at 1e9 keys a day.
//	entry  16: 22 bits of owner id, taken, fresh; offset 5; fingerprint 4; nonce 4
//
// Numbers are big endian.
const (
	fieldSize = 10
	entrySize = 16
	maxBits   = 26 // of a bucket's number
	growFirst = 1 << 7
)

func appendField(dst []byte, k batcher.Key) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(k.Hi))
	return binary.BigEndian.AppendUint64(dst, k.Lo)
}

func appendOffset(dst []byte, offset int64) []byte {
	dst = append(dst, byte(offset>>32))
	return binary.BigEndian.AppendUint32(dst, uint32(offset))
}

func appendEntry(dst []byte, e entry) []byte {
	x := e.id << 2
	if e.taken {
		x |= 2
	}
	if e.fresh {
		x |= 1
	}
	dst = append(dst, byte(x>>16), byte(x>>8), byte(x))
	dst = appendOffset(dst, e.offset)
	dst = binary.BigEndian.AppendUint32(dst, e.fp)
	return binary.BigEndian.AppendUint32(dst, e.nonce)
}

func parseEntry(p string) entry {
	_ = p[entrySize-1]
	x := uint32(p[0])<<16 | uint32(p[1])<<8 | uint32(p[2])
	return entry{
		id: x >> 2, taken: x&2 != 0, fresh: x&1 != 0,
		offset: int64(p[3])<<32 | int64(be32(p[4:])),
		fp:     be32(p[8:]), nonce: be32(p[12:]),
	}
}

func be32(p string) uint32 {
	return uint32(p[0])<<24 | uint32(p[1])<<16 | uint32(p[2])<<8 | uint32(p[3])
}

// bucket is the number of a key's bucket in a layer of that many bits.
func bucket(k batcher.Key, gbits, bits uint) uint64 {
	if bits == 0 {
		return 0
	}
	return k.Hi << gbits >> (64 - bits)
}

// appendItem writes what the script of the operation reads of one row.
func appendItem(dst []byte, c *call, r *row) []byte {
	dst = appendField(dst, r.key)
	if c.op == opFind {
		return dst
	}
	dst = appendOffset(dst, r.offset)
	if c.op == opRenew || c.op == opRelease {
		return binary.BigEndian.AppendUint32(dst, r.nonce)
	}
	dst = binary.BigEndian.AppendUint32(dst, r.fp)
	if c.op == opTake {
		w := &c.wants[r.want]
		dst = binary.BigEndian.AppendUint16(dst, uint16(w.owner))
		taken := byte(0)
		if w.taken {
			taken = 1
		}
		dst = append(dst, taken)
		dst = appendOffset(dst, w.offset)
		dst = binary.BigEndian.AppendUint32(dst, w.nonce)
	}
	return dst
}

// section is a slot, or the arrival slots that are asked together, in a body.
type section struct {
	slots    []int64
	layers   []string // of each slot: the bits of each layer
	hint     byte     // bits that the slot's expected keys ask for, perhaps growFirst
	known    *bitmap  // buckets of the last layer that exist and expire; may be nil
	from, to int      // rows
}

// appendBody packs rows for the scripts; see lua/places.lua.
func appendBody(dst []byte, c *call, gbits uint, secs []section) []byte {
	arrival := byte(0)
	if c.head.arrival {
		arrival = 1
	}
	dst = append(dst, arrival, byte(len(secs)))
	counts := make([]int, 0, 16)
	for i := range secs {
		sec := &secs[i]
		dst = append(dst, sec.hint, byte(len(sec.slots)))
		for j, slot := range sec.slots {
			at := len(dst)
			dst = append(dst, 0)
			dst = strconv.AppendInt(dst, slot, 36)
			dst[at] = byte(len(dst) - at - 1)
			dst = append(dst, byte(len(sec.layers[j])))
			dst = append(dst, sec.layers[j]...)
		}
		counts = append(counts, len(dst))
		dst = append(dst, 0, 0, 0, 0)
	}
	for i := range secs {
		sec := &secs[i]
		finest := uint(0)
		for _, layers := range sec.layers {
			for k := range len(layers) {
				finest = max(finest, uint(layers[k]))
			}
		}
		newest := sec.layers[len(sec.layers)-1]
		last := uint(newest[len(newest)-1])
		groups := uint32(0)
		for at := sec.from; at < sec.to; groups++ {
			b := bucket(c.rows[at].key, gbits, finest)
			end := at + 1
			for end < sec.to && end-at < 1000 && bucket(c.rows[end].key, gbits, finest) == b {
				end++
			}
			count := uint16(end - at)
			if sec.known.has(b >> (finest - last)) {
				count |= 1 << 15
			}
			dst = binary.BigEndian.AppendUint16(dst, count)
			for _, layers := range sec.layers {
				for k := range len(layers) {
					dst = append(dst, 0)
					from := len(dst)
					dst = strconv.AppendUint(dst, b>>(finest-uint(layers[k])), 36)
					dst[from-1] = byte(len(dst) - from)
				}
			}
			for ; at < end; at++ {
				dst = appendItem(dst, c, &c.rows[at])
			}
		}
		binary.BigEndian.PutUint32(dst[counts[i]:], groups)
	}
	return dst
}

// retry is an answer of a script that wrote nothing final: the client's view
// of the layers, or of the arrival slots, is old.
type retry struct {
	layers    map[int64]string
	arrival   bool
	from, cur int64
}

var errReply = fmt.Errorf("dedup: the store's script gave an answer that can't be read")

// parseReply reads a script's answer into the call. again is set when the same
// call must be packed anew.
func parseReply(c *call, text string) (again *retry, err error) {
	if text == "" {
		return nil, errReply
	}
	kind, rest := text[0], text[1:]
	switch kind {
	case 'K':
		return nil, parseDone(c, rest)
	case 'M':
		c.status = stMissing
	case 'I':
		c.status = stMoved
		c.got, err = strconv.ParseUint(rest, 10, 64)
	case 'E':
		c.status = stEpoch
		c.got, err = strconv.ParseUint(rest, 10, 64)
	case 'T':
		c.status = stSwapped
		epoch, table, _ := strings.Cut(rest, ";")
		c.table = uuid(table)
		c.got, err = strconv.ParseUint(epoch, 10, 64)
	case 'Q':
		c.status = stQuarantine
		var n [5]int64
		if err = numbers(rest, n[:]); err == nil {
			c.got, c.q, c.d, c.cutoff, c.now = uint64(n[0]), n[1], n[2], n[3], n[4]
		}
	case 'R':
		c.status, c.said = stShape, rest
	case 'V':
		c.status, c.said = stVersion, rest
	case 'S':
		var n [2]int64
		err = numbers(rest, n[:])
		return &retry{arrival: true, from: n[0], cur: n[1]}, err
	case 'L':
		return parseLayers(rest)
	default:
		err = errReply
	}
	return nil, err
}

func parseLayers(text string) (*retry, error) {
	again := &retry{layers: map[int64]string{}}
	piece := func() (string, bool) {
		if text == "" || len(text) < 1+int(text[0]) {
			return "", false
		}
		p := text[1 : 1+int(text[0])]
		text = text[1+int(text[0]):]
		return p, true
	}
	for text != "" {
		name, ok1 := piece()
		layers, ok2 := piece()
		slot, err := strconv.ParseInt(name, 36, 64)
		if !ok1 || !ok2 || err != nil {
			return nil, errReply
		}
		for i := range len(layers) {
			if layers[i] > maxBits {
				return nil, errReply
			}
		}
		again.layers[slot] = layers
	}
	if len(again.layers) == 0 {
		return nil, errReply
	}
	return again, nil
}

// numbers parses a list of integers between semicolons.
func numbers(text string, out []int64) (err error) {
	for i := range out {
		part, rest, found := strings.Cut(text, ";")
		if found != (i < len(out)-1) {
			return errReply
		}
		if out[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return errReply
		}
		text = rest
	}
	return nil
}

func parseDone(c *call, text string) error {
	var part [5]string
	for i := range part {
		var found bool
		if part[i], text, found = strings.Cut(text, ";"); !found {
			return errReply
		}
	}
	var err error
	if c.got, err = strconv.ParseUint(part[0], 10, 64); err != nil {
		return errReply
	}
	c.verify = part[1] == "1"
	if c.now, err = strconv.ParseInt(part[2], 10, 64); err != nil {
		return errReply
	}
	if c.d, err = strconv.ParseInt(part[3], 10, 64); err != nil {
		return errReply
	}
	if c.h, err = strconv.ParseInt(part[4], 10, 64); err != nil {
		return errReply
	}
	switch c.op {
	case opAcked:
		c.run, c.met = parseRun(text), text != ""
	case opNames:
		return parseNames(c, text)
	case opClaim, opRenew, opFind, opTake, opRelease:
		return parseVerdicts(c, text)
	}
	return nil
}

func parseNames(c *call, text string) error {
	for range c.ids {
		if len(text) < 2 {
			return errReply
		}
		n := int(text[0])<<8 | int(text[1])
		if len(text) < 2+n {
			return errReply
		}
		c.names = append(c.names, text[2:2+n])
		text = text[2+n:]
	}
	if text != "" {
		return errReply
	}
	return nil
}

func parseVerdicts(c *call, text string) error {
	n := len(c.rows)
	if len(text) < n {
		return errReply
	}
	c.verdicts = append(c.verdicts[:0], text[:n]...)
	met := text[n:]
	for _, code := range c.verdicts {
		if code < codeNew || code > codeNewAgain {
			return errReply
		}
		if !hasEntry(code) {
			continue
		}
		if len(met) < entrySize {
			return errReply
		}
		c.entries = append(c.entries, parseEntry(met))
		met = met[entrySize:]
	}
	if met != "" {
		return errReply
	}
	return nil
}
