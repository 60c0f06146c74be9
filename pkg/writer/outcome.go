package writer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Outcome is what is known about an insert.
type Outcome uint8

const (
	// Unknown says that rows may be in the table, in a part of its partitions or views, or may still come. It is the answer to everything that isn't proven to be one of the others.
	Unknown Outcome = iota
	// Written says that the server reported the end of the statement: table and views have the rows.
	Written
	// Rejected says that nothing of the statement was written, or will be.
	Rejected
)

func (o Outcome) String() string { return [...]string{"unknown", "written", "rejected"}[o] }

// Cause says why an insert wasn't written, as far as it decides what to do next.
type Cause uint8

// The causes.
const (
	None              Cause = iota
	Late                    // the server refused it by its deadline
	Busy                    // the server can't at present; the same again later
	Data                    // the server doesn't take these values, and never will
	ViewFailed              // a dependent view failed; the table itself may have the rows
	TooManyPartitions       // one block met more partitions than max_partitions_per_insert_block
	Shape                   // the table isn't what the statement expects: describe it again
	Misconfigured           // rights, users, settings: an operator has to act
	Network                 // the server can't be reached or the connection broke
	Timeout                 // no answer within the insert timeout
)

func (c Cause) String() string {
	return [...]string{"none", "late", "busy", "data", "view", "too many partitions", "shape", "misconfigured", "network", "timeout"}[c]
}

// Result is the end of an insert as its sender saw it.
type Result struct {
	Outcome Outcome
	Cause   Cause
	Code    int32 // the server's error code; 0: none
	Message string
	Replica string // host:port that it went to; "": none was reached
	Sent    bool   // the block has begun to leave
}

// Err is nil for a written insert.
func (r Result) Err() error {
	if r.Outcome == Written {
		return nil
	}
	return fmt.Errorf("insert via %s: %s (%s): %s", orNone(r.Replica), r.Outcome, r.Cause, r.Message)
}

func orNone(replica string) string {
	if replica == "" {
		return "no replica"
	}
	return replica
}

// class is what an error code says about an insert.
type class struct {
	cause Cause
	// before: after the block has left, this code still proves that nothing was written; how is said below. TestOutcomeTable proves each by a run.
	before proof
}

type proof uint8

const (
	noProof proof = iota
	// ours: the text is that of our own condition, which stands before everything that writes.
	ours
	// named: raised for the table itself before its first row is written, but the same code may come from a view's target. Where views depend on the table, the
	// text has to name the table's own UUID.
	named
	// cutShort: the server was still reading the one block when the connection ended, as the query log tells later.
	cutShort
)

// codes is the allow-list and the causes. A code that isn't here, or is here without a proof, leaves the outcome of a sent block unknown: most of them can also
// be raised in the middle, between two partitions or between table and view.
var codes = map[int32]class{
	395: {Late, ours},           // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	252: {Busy, named},          // TOO_MANY_PARTS, which has two meanings
	469: {Data, named},          // VIOLATED_CONSTRAINT
	33:  {Network, cutShort},    // CANNOT_READ_ALL_DATA
	159: {cause: Busy},          // TIMEOUT_EXCEEDED
	160: {cause: Busy},          // TOO_SLOW
	201: {cause: Busy},          // QUOTA_EXCEEDED
	202: {cause: Busy},          // TOO_MANY_SIMULTANEOUS_QUERIES
	203: {cause: Busy},          // NO_FREE_CONNECTION
	209: {cause: Network},       // SOCKET_TIMEOUT
	210: {cause: Network},       // NETWORK_ERROR
	216: {cause: Busy},          // QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
	225: {cause: Busy},          // NO_ZOOKEEPER
	236: {cause: Busy},          // ABORTED
	241: {cause: Busy},          // MEMORY_LIMIT_EXCEEDED
	242: {cause: Busy},          // TABLE_IS_READ_ONLY
	243: {cause: Busy},          // NOT_ENOUGH_SPACE
	285: {cause: Busy},          // TOO_FEW_LIVE_REPLICAS
	286: {cause: Busy},          // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: {cause: Busy},          // UNKNOWN_STATUS_OF_INSERT
	341: {cause: Busy},          // UNFINISHED
	394: {cause: Busy},          // QUERY_WAS_CANCELLED
	425: {cause: Busy},          // SYSTEM_ERROR
	439: {cause: Busy},          // CANNOT_SCHEDULE_TASK
	999: {cause: Busy},          // KEEPER_EXCEPTION
	6:   {cause: Data},          // CANNOT_PARSE_TEXT
	27:  {cause: Data},          // CANNOT_PARSE_INPUT_ASSERTION_FAILED
	38:  {cause: Data},          // CANNOT_PARSE_DATE
	41:  {cause: Data},          // CANNOT_PARSE_DATETIME
	69:  {cause: Data},          // ARGUMENT_OUT_OF_BOUND
	70:  {cause: Data},          // CANNOT_CONVERT_TYPE
	72:  {cause: Data},          // CANNOT_PARSE_NUMBER
	128: {cause: Data},          // TOO_LARGE_ARRAY_SIZE
	131: {cause: Data},          // TOO_LARGE_STRING_SIZE
	153: {cause: Data},          // ILLEGAL_DIVISION
	190: {cause: Data},          // SIZES_OF_ARRAYS_DONT_MATCH
	321: {cause: Data},          // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
	349: {cause: Data},          // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
	407: {cause: Data},          // DECIMAL_OVERFLOW
	691: {cause: Data},          // UNKNOWN_ELEMENT_OF_ENUM
	10:  {cause: Shape},         // NOT_FOUND_COLUMN_IN_BLOCK
	16:  {cause: Shape},         // NO_SUCH_COLUMN_IN_TABLE
	44:  {cause: Shape},         // ILLEGAL_COLUMN
	47:  {cause: Shape},         // UNKNOWN_IDENTIFIER
	50:  {cause: Shape},         // UNKNOWN_TYPE
	53:  {cause: Shape},         // TYPE_MISMATCH
	60:  {cause: Shape},         // UNKNOWN_TABLE
	81:  {cause: Shape},         // UNKNOWN_DATABASE
	117: {cause: Shape},         // INCORRECT_DATA
	218: {cause: Shape},         // TABLE_IS_DROPPED
	158: {cause: Misconfigured}, // TOO_MANY_ROWS
	307: {cause: Misconfigured}, // TOO_MANY_BYTES
	396: {cause: Misconfigured}, // TOO_MANY_ROWS_OR_BYTES
	115: {cause: Misconfigured}, // UNKNOWN_SETTING
	164: {cause: Misconfigured}, // READONLY
	192: {cause: Misconfigured}, // UNKNOWN_USER
	193: {cause: Misconfigured}, // WRONG_PASSWORD
	194: {cause: Misconfigured}, // REQUIRED_PASSWORD
	195: {cause: Misconfigured}, // IP_ADDRESS_NOT_ALLOWED
	452: {cause: Misconfigured}, // SETTING_CONSTRAINT_VIOLATION
	497: {cause: Misconfigured}, // ACCESS_DENIED
	516: {cause: Misconfigured}, // AUTHENTICATION_FAILED
}

const deadlineText = "insert deadline passed"

// classify turns the end of an exchange into what is known about the insert.
func classify(err error, st stage, t *Table) Result {
	r := Result{Sent: st.sent}
	if err == nil {
		r.Outcome = Written
		return r
	}
	if !st.sent {
		r.Outcome = Rejected // a statement without its block writes nothing
	}
	r.Message = err.Error()
	var ex *Exception
	var input *inputError
	var refused *DialError
	switch {
	case errors.As(err, &refused) && refused.Cure != "":
		r.Cause = Misconfigured
	case errors.As(err, &ex):
		r.Code, r.Message = ex.Code, ex.Message
		r.Cause = causeOf(ex.Code, ex.Message, st.sent)
		if provesNothingWritten(ex.Code, ex.Message, t) {
			r.Outcome = Rejected
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Cause = Timeout
	case errors.As(err, &input):
		r.Cause = Shape
	default:
		r.Cause = Network
	}
	return r
}

// causeOf says what to do about an error.
func causeOf(code int32, message string, sent bool) Cause {
	c, known := codes[code]
	switch {
	// "while pushing to view" doesn't say that the table has the rows: a view's target is also asked at the start, before the table gets the block.
	case strings.Contains(message, "while pushing to view"), strings.Contains(message, "Target table '") && strings.Contains(message, "' of view '"):
		return ViewFailed
	case code == 395 && !strings.Contains(message, deadlineText):
		return Data
	case code == 252 && strings.Contains(message, "partitions for single INSERT block"):
		return TooManyPartitions
	case !sent && (!known || c.cause == Data):
		return Misconfigured // the statement itself, without a value: a setting, a parameter
	case !known:
		return Busy
	}
	return c.cause
}

// provesNothingWritten is the allow-list proper: the error shows that the statement wrote nothing, although the server had its block.
func provesNothingWritten(code int32, message string, t *Table) bool {
	switch codes[code].before {
	case ours:
		return strings.Contains(message, deadlineText)
	case cutShort:
		return readingTheBlock(message)
	case named:
		if strings.Contains(message, "while pushing to view") {
			return false
		}
		return len(t.Views) == 0 || strings.Contains(message, "("+uuidText(t.UUID)+")")
	default:
		return false
	}
}

var (
	shortBlock = regexp.MustCompile(`in NativeReader\. Rows read: \d+\. Rows expected: [1-9]\d*: While executing Input`)
	shortFrame = regexp.MustCompile(`Bytes read: \d+\. Bytes expected: (\d+): While executing Input`)
)

// endFrame is more than the compressed frame of the empty block that ends the data. Once the server reads that one, it has the block.
const endFrame = 256

func readingTheBlock(message string) bool {
	if shortBlock.MatchString(message) {
		return true
	}
	m := shortFrame.FindStringSubmatch(message)
	return m != nil && number(m[1]) > endFrame
}
