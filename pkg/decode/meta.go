package decode

import (
	"bytes"
	"strconv"
)

// metadata fills a column from what Kafka knows of the record. What the record
// does not have (no timestamp, no such header) counts as an absent field; a
// null key or header value is null.
func (b *Block) metadata(m *metaPlan, r *Record) *Reject {
	t := &b.tok
	*t = token{kind: kStr}
	switch m.what {
	case "$topic":
		b.scan.text = append(b.scan.text[:0], r.Topic...)
		t.str = b.scan.text
	case "$key":
		t.str = r.Key
		if r.Key == nil {
			t.kind = kNull
		}
	case "$header":
		var found bool
		if r.Headers != nil {
			t.str, found = r.Headers(m.header)
		}
		if !found {
			return nil
		}
		if t.str == nil {
			t.kind = kNull
		}
	case "$partition":
		b.integer(int64(r.Partition))
	case "$offset":
		b.integer(r.Offset)
	case "$timestamp":
		if r.TimestampMs < 0 {
			return nil
		}
		b.integer(r.TimestampMs)
		if c := stampedColumn(b.cols[m.col]); c != nil {
			return b.took(c.appendMilli(r.TimestampMs), m.col)
		}
	}
	return b.took(b.cols[m.col].appendToken(t, &b.scan), m.col)
}

// integer makes the token a number.
func (b *Block) integer(v int64) {
	t := &b.tok
	t.kind, t.neg, t.mant = kNum, v < 0, uint64(v)
	if v < 0 {
		t.mant = -t.mant
	}
	b.scan.text = strconv.AppendInt(b.scan.text[:0], v, 10)
	t.raw = b.scan.text
}

func (b *Block) took(f fault, col int) *Reject {
	if f != ok {
		return b.refused(f, col, nil)
	}
	b.filled++
	return nil
}

// refused words the fault of a value for a column.
func (b *Block) refused(f fault, col int, fl *field) *Reject {
	plan := &b.plan.cols[col]
	path := plan.source
	if fl != nil {
		path = fl.path
	}
	if f == fNull && plan.key {
		return &Reject{Class: ClassMissingKey, Field: path, Detail: "the key column " + strconv.Quote(plan.Name) + " is null"}
	}
	return columnReject(f, path, &plan.Column, &b.tok, b.scan.member)
}

// broken words a fault of the JSON text.
func (b *Block) broken(f fault, fl *field) *Reject {
	r := &Reject{Class: faults[f].class, Detail: "the record " + faults[f].text + ", at byte " + strconv.Itoa(b.scan.at)}
	if fl != nil {
		r.Field = clip([]byte(fl.path), maxName)
	}
	return r
}

// notObject tells JSON that is no object from what is no JSON.
func (b *Block) notObject(p int) *Reject {
	s := &b.scan
	if bytes.HasPrefix(s.data, []byte("\xef\xbb\xbf")) {
		return &Reject{Class: ClassSyntax, Detail: "the record begins with a byte order mark"}
	}
	end, f := s.value(p, 1, nil, false)
	if f != ok {
		return b.broken(f, nil)
	}
	if rej := b.end(end); rej != nil {
		return rej
	}
	var t token
	s.scalar(p, &t)
	return &Reject{Class: ClassNotObject, Detail: "the record is " + kindNames[t.kind] + ", not an object"}
}
