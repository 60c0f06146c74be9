package writer

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// WholeBatch stands for the number of a piece where a batch isn't cut by table partitions.
const WholeBatch = -1

// Token is the insert deduplication token of a batch or of one piece of it. It is made of what the rows are, not of who sends them: a replay by another group
// that cuts the same range into the same rows is the same insert.
func Token(source batcher.Source, r batcher.Range, digest uint64, piece int) string {
	token := source.String() + ":" + rangeText(r) + ":" + digestText(digest)
	if piece != WholeBatch {
		token += ":" + strconv.Itoa(piece)
	}
	return token
}

// Attempt tells one sending of a statement from another.
type Attempt struct {
	Generation int32 // of the consumer group
	Number     int
}

const idPrefix = "oncesink/"

// Stem is the part of a query id that all statements of a group for one partition into one table share, with a slash at its end.
func Stem(table [16]byte, group string, source batcher.Source) string {
	return TablePrefix(table) + batcher.Escape(group) + "/" + source.String() + "/"
}

// TablePrefix is what the query ids of every sink's statements into a table begin with.
func TablePrefix(table [16]byte) string { return idPrefix + uuidText(table) + "/" }

// QueryIDPrefix is a query id up to and including the piece: what all attempts at one statement share, with a slash at its end.
func QueryIDPrefix(table [16]byte, group string, source batcher.Source, r batcher.Range, digest uint64, piece int) string {
	return BatchPrefix(table, group, source, r, digest) + strconv.Itoa(max(piece, 0)) + "/"
}

// BatchPrefix is what the query ids of all pieces and attempts of one row set share.
func BatchPrefix(table [16]byte, group string, source batcher.Source, r batcher.Range, digest uint64) string {
	return Stem(table, group, source) + rangeText(r) + "/" + digestText(digest) + "/"
}

// QueryID names one attempt at one statement.
func QueryID(table [16]byte, group string, source batcher.Source, r batcher.Range, digest uint64, piece int, a Attempt) string {
	return fmt.Sprintf("%s%d.%d", QueryIDPrefix(table, group, source, r, digest, piece), a.Generation, a.Number)
}

func rangeText(r batcher.Range) string {
	return strconv.FormatInt(r.First, 10) + "-" + strconv.FormatInt(r.Last, 10)
}

func digestText(digest uint64) string { return fmt.Sprintf("%016x", digest) }

func uuidText(id [16]byte) string {
	h := hex.EncodeToString(id[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
