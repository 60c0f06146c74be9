package dedup

import (
	"bytes"
	"testing"

	"github.com/oncesink/oncesink/pkg/batcher"
)

func FuzzEntry(f *testing.F) {
	f.Add(uint32(1), true, false, int64(5), uint32(6), uint32(7))
	f.Add(uint32(1<<22-1), false, true, int64(maxOffset), ^uint32(0), ^uint32(0))
	f.Fuzz(func(t *testing.T, id uint32, fresh, taken bool, offset int64, fp, nonce uint32) {
		e := entry{id: id & (1<<22 - 1), fresh: fresh, taken: taken, offset: offset & maxOffset, fp: fp, nonce: nonce}
		p := appendEntry(nil, e)
		if len(p) != entrySize {
			t.Fatalf("%d bytes", len(p))
		}
		if got := parseEntry(string(p)); got != e {
			t.Fatalf("%+v became %+v", e, got)
		}
	})
}

// Whatever the server says, parsing it neither panics nor invents verdicts.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"", "M", "V2", "I5", "E12", "T7;00112233445566778899aabbccddeeff", "Q7;1;2;3;4", "Ra;b;1", "S-1;2", "L\x02ab\x01\x07",
		"K7;1;2;3;4;00", "K7;0;2;3;4;200000000000000000", "K7;0;2;3;4;1,2", "K7;0;2;3;4;\x00\x03g|s"} {
		for o := opClaim; o < ops; o++ {
			f.Add(byte(o), byte(2), s)
		}
	}
	f.Fuzz(func(t *testing.T, o, n byte, text string) {
		c := &call{op: op(o) % ops, rows: make([]row, n%8), ids: make([]uint32, n%4)}
		again, err := parseReply(c, text)
		if err != nil || again != nil || c.status != stOK {
			return
		}
		if len(c.verdicts) > 0 && len(c.verdicts) != len(c.rows) || c.op == opNames && len(c.names) != len(c.ids) {
			t.Fatalf("%d verdicts for %d rows, %d names for %d ids", len(c.verdicts), len(c.rows), len(c.names), len(c.ids))
		}
		met := 0
		for _, code := range c.verdicts {
			if hasEntry(code) {
				met++
			}
		}
		if met != len(c.entries) {
			t.Fatalf("%d entries for %d verdicts that have one", len(c.entries), met)
		}
	})
}

// A body read back as lua/places.lua reads it holds every row once, in its
// bucket.
func FuzzBody(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"), byte(3), byte(5), byte(0))
	f.Fuzz(func(t *testing.T, raw []byte, coarse, finer, gbits byte) {
		coarse, finer, gbits = coarse%20, finer%20, gbits%5
		c := &call{op: opRelease, head: &head{}}
		for ; len(raw) >= 16; raw = raw[16:] {
			k := batcher.Key{Hi: uint64(be32(string(raw)))<<32 | uint64(be32(string(raw[4:]))), Lo: uint64(be32(string(raw[8:])))<<32 | uint64(be32(string(raw[12:])))}
			c.rows = append(c.rows, row{key: k, offset: int64(len(c.rows)), nonce: 9})
		}
		bits := []uint{uint(coarse), uint(finer)}
		layers := string([]byte{coarse, finer})
		body := appendBody(nil, c, uint(gbits), []section{{slots: []int64{7}, layers: []string{layers}, to: len(c.rows)}})
		at := 0
		take := func(n int) []byte { at += n; return body[at-n : at] }
		take(2 + 2)
		take(int(take(1)[0]))
		take(int(take(1)[0]))
		groups := be32(string(take(4)))
		next := 0
		for range groups {
			count := take(2)
			var names [2]string
			for i := range names {
				names[i] = string(take(int(take(1)[0])))
			}
			for range int(count[0])<<8 | int(count[1]) {
				r := c.rows[next]
				if !bytes.Equal(take(19), appendItem(nil, c, &r)) {
					t.Fatalf("row %d is not what was packed", next)
				}
				for i, name := range names {
					if want := base36(int64(bucket(r.key, uint(gbits), bits[i]))); name != want && name+want != "0" {
						t.Fatalf("row %d: bucket %s of layer %d, want %s", next, name, i, want)
					}
				}
				next++
			}
		}
		if next != len(c.rows) || at != len(body) {
			t.Fatalf("%d of %d rows, %d of %d bytes", next, len(c.rows), at, len(body))
		}
	})
}
