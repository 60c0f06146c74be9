// Package writer is the ClickHouse side of the sink: what a table looks like, one insert of one native block with a token and a deadline, what is known about its end, and
// the questions that recovery asks.
//
// The contract of [Server.Insert] is its Outcome. Written: the server reported the end of the stream, so the table and every view that hangs on it have the rows. Rejected:
// nothing was written and nothing will be; either the block never began to leave, or the error is on the allow-list of errors that the server raises before it writes anything,
// each proven by a run. Unknown is everything else, and the caller has to wait until the attempt is over before it decides. A statement is sent once, is never cancelled, and its
// connection isn't used again after a failure. What a profile could do to an insert (queue, split, cut or filter it, keep it out of the log, switch deduplication off) is
// overridden with every statement.
//
// Addresses are replicas of one shard. What must hold everywhere (no statement runs any more, the logs are complete) is asked of all of them, and one that can't be asked is an
// error; what any can answer is asked of one after another.
//
// Not promised: that a token works, which needs a deduplication window ([Server.Check], [Server.SafeWindow], [Server.Canary]); that a server that loses its disk keeps what it
// acknowledged; anything about Distributed tables, which are refused. A column whose type is changed while a block is on its way is converted by the server as the ALTER
// converts the rows that are there.
package writer
