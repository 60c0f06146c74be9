// Package offsets is the group side of a sink: what a partition's committed
// offset says (the intent in its metadata), the fenced commit that writes it,
// the leases under which partitions are held, and the facts of a Kafka cluster
// that the protocol needs (ids, log bounds, whether a group is alive).
//
// Contract:
//
//   - An intent comes back exactly as it was written, or not at all: text that
//     is not ours is "no intent", ours in an unknown version is *NewerError,
//     ours but damaged is *CorruptError. Nothing is guessed.
//   - Commit returns nil only when the broker has confirmed the commit. It
//     returns ErrFenced when it can never succeed under this lease. Everything
//     else, lost answers included, is repeated until its context ends.
//   - The broker fences by member and generation, not by partition: a live
//     member may commit a partition that it has lost. The lease closes that
//     gap (F8); a commit leaves only while its lease is held, under the
//     generation of that lease.
//
// Not promised: that a commit whose context ended was not applied, or that one
// given up by a dying connection is not applied later, over a newer one. A
// reader of the metadata must therefore treat an old intent as possible (F2).
package offsets
