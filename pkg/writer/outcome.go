package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Outcome is what is known about an insert.
type Outcome uint8

const (
	// Unknown: rows may be in the table, in a part of its partitions or views, or may still come. It is the answer to everything that isn't proven to be one of the others.
	Unknown Outcome = iota
	// Written: the server reported the end of the statement: table and views have the rows.
	Written
	// Rejected: nothing of the statement was written, or will be.
	Rejected
)

func (o Outcome) String() string { return [...]string{"unknown", "written", "rejected"}[o] }

// Cause says why an insert wasn't written, as far as it decides what to do next.
type Cause uint8

const (
	None              Cause = iota
	Late                    // the server refused it by its deadline
	Busy                    // the server can't at present; the same again later
	Data                    // the server doesn't take these values, and never will
	ViewFailed              // a dependent view failed; the table itself has the rows
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

// class is what an error code means for an insert whose block has left. (One whose block hasn't left is rejected, whatever the code.)
type class struct {
	cause Cause
	// before: the server raises this code before it writes anything of a block. With views: also when views depend on the table. Both were proven by a run for
	// each code that an engine can be made to raise, see TestOutcomeTable.
	before, beforeWithViews bool
}

// codes is the allow-list: whatever isn't here, or is here without `before`, is unknown.
var codes = map[int32]class{
	395: {cause: Late}, // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, only with our text, see classify

	202: {cause: Busy}, // TOO_MANY_SIMULTANEOUS_QUERIES
	203: {cause: Busy}, // NO_FREE_CONNECTION
	216: {cause: Busy}, // QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
	159: {cause: Busy}, // TIMEOUT_EXCEEDED
	160: {cause: Busy}, // TOO_SLOW
	201: {cause: Busy}, // QUOTA_EXCEEDED
	209: {cause: Network},
	210: {cause: Network},
	225: {cause: Busy}, // NO_ZOOKEEPER
	236: {cause: Busy}, // ABORTED
	241: {cause: Busy}, // MEMORY_LIMIT_EXCEEDED
	242: {cause: Busy}, // TABLE_IS_READ_ONLY
	243: {cause: Busy}, // NOT_ENOUGH_SPACE
	285: {cause: Busy}, // TOO_FEW_LIVE_REPLICAS
	286: {cause: Busy}, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: {cause: Busy}, // UNKNOWN_STATUS_OF_INSERT
	341: {cause: Busy}, // UNFINISHED
	394: {cause: Busy}, // QUERY_WAS_CANCELLED
	425: {cause: Busy}, // SYSTEM_ERROR
	439: {cause: Busy}, // CANNOT_SCHEDULE_TASK
	999: {cause: Busy}, // KEEPER_EXCEPTION

	252: {cause: Busy}, // TOO_MANY_PARTS, of two meanings, see classify

	6:   {cause: Data}, // CANNOT_PARSE_TEXT
	190: {cause: Data}, // SIZES_OF_ARRAYS_DONT_MATCH
	321: {cause: Data}, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
	349: {cause: Data}, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
	407: {cause: Data}, // DECIMAL_OVERFLOW
	469: {cause: Data}, // VIOLATED_CONSTRAINT
	691: {cause: Data}, // UNKNOWN_ELEMENT_OF_ENUM

	10:  {cause: Shape}, // NOT_FOUND_COLUMN_IN_BLOCK
	16:  {cause: Shape}, // NO_SUCH_COLUMN_IN_TABLE
	44:  {cause: Shape}, // ILLEGAL_COLUMN
	47:  {cause: Shape}, // UNKNOWN_IDENTIFIER
	50:  {cause: Shape}, // UNKNOWN_TYPE
	53:  {cause: Shape}, // TYPE_MISMATCH
	60:  {cause: Shape}, // UNKNOWN_TABLE
	81:  {cause: Shape}, // UNKNOWN_DATABASE
	218: {cause: Shape}, // TABLE_IS_DROPPED

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
func classify(err error, st stage, views bool) Result {
	r := Result{Sent: st.sent}
	if err == nil {
		r.Outcome = Written
		return r
	}
	r.Message = err.Error()
	if !st.sent {
		r.Outcome = Rejected // a statement without its block writes nothing
	}
	var ex *Exception
	switch {
	case errors.As(err, &ex):
		r.Code, r.Message = ex.Code, ex.Message
		exceptionCause(&r, ex, views)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Cause = Timeout
	case errors.As(err, new(*inputError)):
		r.Cause = Shape
	default:
		r.Cause = Network
	}
	return r
}

func exceptionCause(r *Result, ex *Exception, views bool) {
	if strings.Contains(ex.Message, "while pushing to view") {
		r.Cause = ViewFailed
		return
	}
	c, known := codes[ex.Code]
	r.Cause = c.cause
	before := c.before && !views || c.beforeWithViews
	switch {
	case !known:
		r.Cause = Busy
	case ex.Code == 395 && !strings.Contains(ex.Message, deadlineText):
		r.Cause, before = Data, false
	case ex.Code == 252 && strings.Contains(ex.Message, "partitions for single INSERT block"):
		r.Cause = TooManyPartitions
	}
	if before {
		r.Outcome = Rejected
	}
}
