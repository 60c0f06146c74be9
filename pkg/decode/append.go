package decode

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Append decodes a record into the next row. If it returns a Reject the block
// is as before.
func (d *JSON) Append(b *Block, r *Record) (Row, *Reject) {
	if b.plan != d {
		panic("decode: Append to a block of another plan")
	}
	if len(r.Value) == 0 {
		return Row{}, &Reject{Class: ClassTombstone, Detail: "the record has no value"}
	}
	row, rej := b.record(r)
	if rej == nil {
		row.Key, rej = b.key()
	}
	if rej == nil && d.event >= 0 {
		row.EventTimeMs, rej = b.eventTime(r)
	}
	if rej != nil {
		b.Truncate(b.rows)
		return Row{}, rej
	}
	b.rows++
	return row, nil
}

// record fills the columns of a row.
func (b *Block) record(r *Record) (row Row, rej *Reject) {
	s := &b.scan
	s.start(r.Value)
	b.nextRound()
	p := s.space(0)
	if p >= len(s.data) || s.data[p] != '{' {
		return row, b.notObject(p)
	}
	if row.Fingerprint, rej = b.members(p + 1); rej != nil {
		return row, rej
	}
	for i := range b.plan.meta {
		if rej = b.metadata(&b.plan.meta[i], r); rej != nil {
			return row, rej
		}
	}
	if b.filled < len(b.cols) {
		rej = b.absent()
	}
	if rej == nil && b.plan.arrays != nil {
		rej = b.lengths()
	}
	return row, rej
}

func (b *Block) nextRound() {
	b.filled = 0
	b.round++
	if b.round == 0 { // wrapped: old rounds would look new
		clear(b.seen)
		b.round = 1
	}
}

// members reads the members of the record's object, from behind its bracket,
// and returns the fingerprint.
func (b *Block) members(p int) (fingerprint uint64, _ *Reject) {
	s, t, data := &b.scan, &b.tok, b.scan.data
	hasher, seeder := b.plan.hasher, b.plan.seeder
	p = s.space(p)
	if p < len(data) && data[p] == '}' {
		return 0, b.end(p + 1)
	}
	last := 0
	for {
		n := int(b.after[last])
		fl := b.fields[n]
		if q := fl.quoted; len(data)-p > len(q) && string(data[p:p+len(q)]) == q {
			if p += len(q); data[p] <= ' ' {
				p = s.space(p)
			}
		} else {
			var rej *Reject
			if p, n, rej = b.member(p, last); rej != nil {
				return 0, rej
			}
			fl = b.fields[n]
		}
		if b.seen[n] == b.round {
			return 0, &Reject{Class: ClassDuplicate, Field: clip([]byte(fl.path), maxName), Detail: "the record has this field twice"}
		}
		b.seen[n] = b.round
		last = n

		from := p
		var f fault
		p, f = s.scalar(p, t)
		if f == ok && t.kind >= kArr {
			s.canon = s.canon[:0]
			if p, f = s.walk(p, 2, fl.kids, false); f == ok {
				t.raw = data[from:p]
			}
		}
		if f != ok {
			return 0, b.broken(f, fl)
		}
		if !fl.silent {
			canonical := t.raw
			if !t.plain || t.kind >= kArr {
				canonical = b.canonical(t)
			}
			if seeder != nil && n > 0 {
				fingerprint += seeder.Seeded(b.seeds[n], canonical)
			} else {
				fingerprint += hasher.Field(fl.name, canonical)
			}
		}
		for _, c := range fl.cols {
			if f := b.cols[c].appendToken(t, s); f != ok {
				return 0, b.refused(f, c, fl)
			}
			b.filled++
		}
		if fl.kids != nil {
			if rej := b.nested(fl, t); rej != nil {
				return 0, rej
			}
		} else if fl.unknown {
			fl.count++
		}

		if p < len(data) && data[p] == ',' {
			if p++; p < len(data) && data[p] > ' ' {
				continue
			}
			p = s.space(p)
			continue
		}
		var more bool
		if p, more, f = s.next(p, '}'); f != ok {
			return 0, b.broken(f, nil)
		}
		if !more {
			return fingerprint, b.end(p)
		}
	}
}

// canonical returns the canonical form of the value just read.
func (b *Block) canonical(t *token) []byte {
	if t.kind >= kArr {
		return b.scan.canon // walk has left it there
	}
	b.scan.canon = b.scan.canon[:0]
	return b.scan.canonical(t)
}

// member reads a name that was not the predicted one, and returns where its
// value begins and its number.
func (b *Block) member(p, last int) (int, int, *Reject) {
	s := &b.scan
	var name token
	p, f := s.name(p, &name)
	if f != ok {
		return p, 0, b.broken(f, nil)
	}
	n, known := b.index[string(name.str)]
	if !known {
		switch {
		case !b.plan.lax:
			return p, 0, &Reject{Class: ClassUnknown, Field: clip(name.str, maxName), Detail: "no column takes this field"}
		case len(name.str) <= maxLearnedName && len(b.fields) <= len(b.plan.root.fields)+maxLearned:
			fl := newField(string(name.str), string(name.str))
			fl.unknown = true
			n = b.addField(fl)
		default:
			if !s.names.add(0, name.str) {
				return p, 0, &Reject{Class: ClassDuplicate, Field: clip(name.str, maxName), Detail: "the record has this field twice"}
			}
			b.fields[0].name = view(name.str)
			b.seen[0] = 0
			return p, 0, nil
		}
	}
	b.after[last] = int32(n)
	return p, n, nil
}

// end checks that nothing follows the object.
func (b *Block) end(p int) *Reject {
	if p = b.scan.space(p); p != len(b.scan.data) {
		return &Reject{Class: ClassTrailing, Detail: "something follows the object at byte " + strconv.Itoa(p)}
	}
	return nil
}

// nested fills the columns that are read from inside an object. It was walked
// before, so it is well formed.
func (b *Block) nested(fl *field, t *token) *Reject {
	if t.kind != kObj {
		f := fWrongType
		if t.kind == kNull {
			f = fNull
		}
		return &Reject{Class: faults[f].class, Field: clip([]byte(fl.path), maxName),
			Detail: kindNames[t.kind] + " where columns are read from inside an object"}
	}
	s := &b.scan
	outer := s.data
	s.data = t.raw
	rej := b.nestedMembers(fl)
	s.data = outer
	return rej
}

func (b *Block) nestedMembers(fl *field) *Reject {
	s := &b.scan
	t := s.push()
	defer s.pop()
	p := s.space(1)
	for more := s.data[p] != '}'; more; {
		var name token
		var f fault
		if p, f = s.name(p, &name); f != ok {
			return b.broken(f, fl)
		}
		if p, f = s.whole(p, t); f != ok {
			return b.broken(f, fl)
		}
		if kid := fl.kids.lookup(name.str); kid != nil {
			for _, c := range kid.cols {
				if f := b.cols[c].appendToken(t, s); f != ok {
					b.tok = *t
					return b.refused(f, c, kid)
				}
				b.filled++
			}
			if kid.kids != nil {
				if rej := b.nested(kid, t); rej != nil {
					return rej
				}
			}
		} else if len(fl.cols) == 0 {
			if !b.plan.lax {
				return &Reject{Class: ClassUnknown, Field: clip([]byte(fl.path+"."+string(name.str)), maxName), Detail: "no column takes this field"}
			}
			b.countNested(fl.path, name.str)
		}
		if p, more, f = s.next(p, '}'); f != ok {
			return b.broken(f, fl)
		}
	}
	return nil
}

// absent fills the columns that the record has no value for.
func (b *Block) absent() *Reject {
	for i, c := range b.cols {
		if c.Rows() > b.rows {
			continue
		}
		switch plan := &b.plan.cols[i]; {
		case plan.key:
			return &Reject{Class: ClassMissingKey, Field: plan.source, Detail: "the key column " + strconv.Quote(plan.Name) + " is absent"}
		case !plan.computed:
			if !plan.nullable && !b.plan.zero {
				return &Reject{Class: ClassMissing, Field: plan.source,
					Detail: "the field is absent, and column " + strconv.Quote(plan.Name) + " (" + clip([]byte(plan.Type), maxName) + ") is not Nullable and has no DEFAULT"}
			}
			c.appendZero()
		case b.defaults == nil || b.defaults.cols[i].Rows() != 1:
			if b.defaults != nil && b.defaults.why[i] != "" {
				return &Reject{Class: ClassDepends, Field: plan.source,
					Detail: "the field is absent and DEFAULT cannot be evaluated alone: " + clip([]byte(b.defaults.why[i]), 2*maxName)}
			}
			return &Reject{Class: ClassDefaultUnset, Field: plan.source,
				Detail: "the field is absent and the column's DEFAULT was not evaluated; this is no fault of the record"}
		default:
			c.appendFrom(b.defaults.cols[i], 0)
		}
	}
	return nil
}

// key hashes the canonical form of the row's key.
func (b *Block) key() (k batcher.Key, rej *Reject) {
	b.keyText = append(b.keyText[:0], keyVersion)
	dst := b.keyText
	for _, i := range b.plan.key {
		from := len(dst)
		var set bool
		dst, set = b.cols[i].appendKey(dst, b.rows)
		if !set || dst[from] == keyText && blank(dst[from+1:]) {
			plan := &b.plan.cols[i]
			return k, &Reject{Class: ClassMissingKey, Field: plan.source, Detail: "the key column " + strconv.Quote(plan.Name) + " is null or blank"}
		}
	}
	b.keyText = dst
	return b.plan.hasher.Key(dst), nil
}

// blank tells whether nothing can be seen of a text, which stands behind its
// length: it is empty, or of white space, zero-width characters and NUL. As a
// key it would make one row of many records.
func blank(s []byte) bool {
	if last := s[len(s)-1]; s[0] != 0 && last > ' ' && last < utf8.RuneSelf {
		return false
	}
	for s[0] >= 0x80 {
		s = s[1:]
	}
	return bytes.IndexFunc(s[1:], visible) < 0
}

func visible(r rune) bool {
	return r != 0 && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func (b *Block) eventTime(r *Record) (int64, *Reject) {
	plan := &b.plan.cols[b.plan.event]
	ms, fits := b.event(b.rows)
	if !fits {
		return 0, &Reject{Class: ClassOutOfRange, Field: plan.source, Detail: "the event time does not fit 64 bits of milliseconds"}
	}
	if limit := b.plan.future; limit > 0 && r.TimestampMs >= 0 && ms > r.TimestampMs && ms-r.TimestampMs > limit {
		return 0, &Reject{Class: ClassFuture, Field: plan.source,
			Detail: "the event time is " + strconv.FormatInt((ms-r.TimestampMs)/1000, 10) + " s later than the record's own time"}
	}
	return ms, nil
}
