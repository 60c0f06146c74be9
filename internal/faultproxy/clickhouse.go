package faultproxy

import "bytes"

// ClickHouseInsert completes the options of a rule for INSERT statements over ClickHouse's native protocol: the server's first reply is the shape of the
// table, upon which the client sends its block; the second one is the acknowledgement. A refusal (an exception) is passed on and is no fault.
func ClickHouseInsert(o RuleOptions) RuleOptions {
	if o.Marker == "" {
		o.Marker = "INSERT INTO"
	}
	o.Turn = 2
	o.Done = insertDone
	return o
}

// endOfStream is the packet that acknowledges; it has no body and nothing follows it.
const endOfStream = 5

func insertDone(reply []byte) Verdict {
	switch {
	case bytes.Contains(reply, []byte("DB::Exception")):
		return Spare
	case reply[len(reply)-1] == endOfStream:
		return Complete
	}
	return Wait
}
