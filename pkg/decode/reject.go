package decode

import (
	"strconv"
	"strings"
)

// The classes of a Reject. They are counted and shown to operators, so they
// are part of the contract.
const (
	ClassTombstone    = "tombstone"      // the value is null or empty; the caller decides what that means
	ClassSyntax       = "syntax"         // not JSON
	ClassNotObject    = "not_an_object"  // JSON, but not one object
	ClassTrailing     = "trailing_data"  // something follows the object
	ClassTooDeep      = "too_deep"       // nested deeper than MaxDepth
	ClassDuplicate    = "duplicate_name" // one object has a name twice
	ClassUTF8         = "invalid_utf8"   // bytes that are not UTF-8, or half a surrogate pair
	ClassUnknown      = "unknown_field"  // a field that no column takes
	ClassMissingKey   = "missing_key"    // a key column is absent, null or blank
	ClassMissing      = "missing_field"  // absent, and the column has neither NULL nor a DEFAULT for that
	ClassWrongType    = "wrong_type"     // a JSON type that the column does not take
	ClassNull         = "null"           // null for a column that is not Nullable
	ClassOutOfRange   = "out_of_range"   // outside the range of the column
	ClassInexact      = "inexact"        // digits that the column cannot keep
	ClassBadValue     = "bad_value"      // text that does not spell a value of the column's type
	ClassAmbiguous    = "ambiguous_time" // a local time that a zone skips or has twice, an epoch of unclear unit
	ClassFuture       = "future"         // an event time later than Options.MaxFutureMs allows
	ClassDepends      = "default_depends"
	ClassDefaultUnset = "default_unset"
	ClassTooLarge     = "too_large" // the block's text would pass 2 GiB
)

// Reject says why a record became no row. The block is as it was before. Its
// text leaves out the class, beside which it is kept and shown.
type Reject struct {
	Class string
	// Field is the field of the record, by path; for a value that came from
	// elsewhere, the column.
	Field string
	// Detail is for a person. It is bounded and holds at most a short excerpt
	// of a number or of a time, never text of the record.
	Detail string
}

func (r *Reject) Error() string {
	var b strings.Builder
	if r.Field != "" {
		b.WriteString("field ")
		b.WriteString(strconv.Quote(r.Field))
		b.WriteString(": ")
	}
	b.WriteString(r.Detail)
	return b.String()
}

// fault is a Reject before it is worded: the hot path hands on one byte.
type fault uint8

const (
	ok fault = iota
	fSyntax
	fTooDeep
	fDuplicate
	fUTF8
	fWrongType
	fNull
	fRange
	fExponent
	fInexact
	fBadValue
	fAmbiguous
	fUnit
	fTooLarge
	fSameKey
	fLength
	fUnknownMember
	fMissingMember
	fDot
)

var faults = [...]struct{ class, text string }{
	ok:         {"", ""},
	fSyntax:    {ClassSyntax, "is not JSON"},
	fTooDeep:   {ClassTooDeep, "is nested deeper than 64"},
	fDuplicate: {ClassDuplicate, "has a name twice"},
	fUTF8:      {ClassUTF8, "is not UTF-8"},
	fWrongType: {ClassWrongType, "is of a JSON type that the column does not take"},
	fNull:      {ClassNull, "is not for a column that is not Nullable"},
	fRange:     {ClassOutOfRange, "is outside the range of the column"},
	fExponent:  {ClassOutOfRange, "has a number with an exponent beyond 1000000000"},
	fInexact:   {ClassInexact, "has digits that the column cannot keep"},
	fBadValue:  {ClassBadValue, "does not spell a value of the column"},
	fAmbiguous: {ClassAmbiguous, "is a local time that its zone skips or has twice"},
	fUnit:      {ClassAmbiguous, "is an epoch whose unit (s, ms, us or ns) its magnitude does not tell"},
	fTooLarge:  {ClassTooLarge, "does not fit into the block any more"},

	fSameKey:       {ClassDuplicate, "has two names that are one key of the column"},
	fLength:        {ClassBadValue, "has not as many elements as the column"},
	fUnknownMember: {ClassUnknown, "has a member that is not in the column"},
	fDot:           {ClassBadValue, "has a name with a dot, which is a path to the column"},
	fMissingMember: {ClassMissing, "lacks a member that is in the column and not Nullable"},
}

// maxExcerpt and maxName bound what a Reject repeats of a record.
const (
	maxExcerpt = 40
	maxName    = 100
)

func clip(s []byte, n int) string {
	if len(s) <= n {
		return string(s)
	}
	return string(s[:n]) + "..."
}

// columnReject words the fault of a value for a column. inside is the path of
// the member that has it, in a Tuple.
func columnReject(f fault, field string, col *Column, t *token, inside string) *Reject {
	var b strings.Builder
	switch {
	case f == fNull && t.kind == kNull:
		b.WriteString("null, and ")
	case f == fNull: // inside of an array or an object
		b.WriteString(kindNames[t.kind] + " with null in it, and ")
	case t.kind == kNum:
		b.WriteString(clip(t.raw, maxExcerpt))
		b.WriteByte(' ')
	case t.kind == kStr && t.looksLikeNumberOrTime():
		b.WriteString(strconv.Quote(clip(t.str, maxExcerpt)))
		b.WriteByte(' ')
	case t.kind == kStr:
		b.WriteString("a string of " + strconv.Itoa(len(t.str)) + " bytes ")
	default:
		b.WriteString(kindNames[t.kind] + " ")
	}
	column := "column " + strconv.Quote(clip([]byte(col.Name), maxName)) + " (" + clip([]byte(col.Type), maxName) + ")"
	switch text := faults[f].text; {
	case f == fNull:
		b.WriteString(column + " is not Nullable")
	case strings.Contains(text, "the column"):
		b.WriteString(strings.Replace(text, "the column", column, 1))
	default:
		b.WriteString(text + ", for " + column)
	}
	if inside != "" {
		b.WriteString(": see member " + strconv.Quote(clip([]byte(inside), maxName)))
	}
	return &Reject{Class: faults[f].class, Field: clip([]byte(field), maxName), Detail: b.String()}
}
