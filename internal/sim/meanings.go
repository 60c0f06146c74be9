package sim

import "reflect"

// meaning is what a field is, as far as two worlds that differ in it may do the same.
type meaning uint8

const (
	plain   meaning = iota
	scratch         // constant, or written before it is read
	skipped         // nothing that happens hangs on it, or it follows from the rest
	instant         // milliseconds of virtual time; 0: none
	moment          // the same, of which it matters no more how long it is ago when a deadline has passed since
	until           // a deadline: how long ago it passed does not matter
	nonce
	epoch
	byGroup // an array with one element a hash-tag group, of epochs
	whether // it is 0 or not
	await   // the call a lane awaits: which number it has does not matter
)

// meanings lists the fields that are not written as they are.
var meanings = map[string]meaning{
	"pipeline.Machine.cfg": scratch, "pipeline.Machine.out": scratch, "pipeline.Machine.seen": scratch, "pipeline.Machine.rows": scratch,
	"pipeline.Machine.now": skipped, "pipeline.Machine.seq": skipped, "pipeline.Machine.waitsFor": skipped,
	"pipeline.Machine.mainRef": await, "pipeline.Machine.gateRef": await,
	"pipeline.job.nonce": nonce, "pipeline.job.old": nonce, "pipeline.job.met": nonce,
	"pipeline.job.left": moment, "pipeline.job.replied": moment, "pipeline.job.asked": moment, "pipeline.job.safeAt": moment,
	"pipeline.job.fails": skipped, "pipeline.gateLane.wait": skipped, "pipeline.Sleep.Millis": skipped, // every sleep takes as long here
	"offsets.Sent.Deadline": until, "offsets.Sent.FirstAttempt": moment,
	"pipeline.job.attempt": skipped, "pipeline.job.lastly": skipped, // of the query id, and of what people are told
	"pipeline.lateSet.nonce": nonce, "pipeline.lateSet.claimed": moment, "pipeline.lateSet.replied": moment,
	"pipeline.Batch.nonce": nonce, "pipeline.Batch.stray": nonce, "pipeline.Batch.heldSince": instant,
	"pipeline.gateLane.nonce": nonce, "pipeline.gateLane.left": moment, "pipeline.gateLane.vouched": instant,
	"pipeline.Claim.Nonce": nonce, "pipeline.Renew.Old": nonce, "pipeline.Renew.Nonce": nonce, "pipeline.Release.Nonce": nonce,
	"pipeline.Settle.Nonces": nonce, "pipeline.TakeOver.Nonce": nonce,
	"pipeline.Insert.Deadline": until, "pipeline.Insert.Attempt": skipped, "pipeline.AwaitOver.Until": until,
	"pipeline.AskFacts.FirstAttempt": moment, "pipeline.AskFacts.Deadline": until,
	"offsets.Sent.Nonce": nonce, "offsets.Sent.Attempt": skipped, "offsets.Sent.Table": skipped,
	"dedup.Owner.Nonce": nonce, "dedup.Answer.Nonce": nonce, "dedup.Item.Nonce": nonce,
	"dedup.Ticket.epochs": byGroup, "dedup.groupState.epoch": epoch, "dedup.groupState.known": epoch, "dedup.groupState.asked": instant, "offsets.Intent.Epochs": epoch, "dedup.groupState.swapEpoch": epoch,
	"dedup.groupState.names": skipped, "dedup.groupState.told": skipped, // looked up again; told people
	"dedup.source.epoch": byGroup, "dedup.source.text": skipped,
	"dedup.marker.epoch": epoch, "dedup.marker.q": instant, "dedup.marker.verify": whether, "dedup.marker.id": skipped,
	"dedup.marker.max":    skipped, // slots of arrival are not used
	"dedup.entry.nonce":   nonce,
	"dedup.entry.id":      skipped, // written by name
	"dedup.claim.expires": skipped, // no run comes near the horizon
	"sim.row.at":          skipped, "sim.statement.deadline": until, "sim.statement.started": skipped,
	"sim.statement.entry": skipped, "sim.statement.inTable": skipped, "sim.statement.id": skipped, "sim.statement.stem": skipped, "sim.logged.started": skipped,
	"sim.request.name": skipped, "sim.sent.lives": skipped,
	"writer.Result.Message": skipped,
	"sim.block.at":          skipped, // no window is over within a run
}

// unused lists what a lane holds of earlier questions and writes anew before it
// reads it: by what it awaits.
func (h *stateHash) unused(v reflect.Value) []string {
	if h.strict {
		return nil
	}
	switch v.Type().String() {
	case "pipeline.gateLane":
		phase, awake := v.FieldByName("phase").Uint(), v.FieldByName("awake").Bool()
		if phase == 0 && awake {
			return nil
		}
		return unusedByGate[phase]
	case "pipeline.job":
		switch v.FieldByName("phase").Uint() {
		case 7: // facts
			return []string{"facts"}
		case 8: // read
			return []string{"present"}
		}
		return []string{"facts", "present", "asked"}
	}
	return nil
}

var unusedByGate = map[uint64][]string{
	0:  {"set", "owners", "asked", "unread", "present", "nonce", "left", "letters", "vouch"}, // idle
	1:  {"asked", "unread", "present", "nonce", "left", "letters", "vouch"},                  // ask
	2:  {"set", "owners", "asked", "unread", "present", "nonce", "left", "letters", "vouch"}, // sleep
	3:  {"owners", "asked", "present", "letters", "vouch"},                                   // claim
	5:  {"owners", "asked", "unread", "present", "nonce", "left", "letters", "vouch"},        // read
	6:  {"asked", "unread", "nonce", "left", "letters", "vouch"},                             // owners
	7:  {"owners", "asked", "unread", "present", "nonce", "left", "letters", "vouch"},        // over
	8:  {"owners", "asked", "unread", "present", "nonce", "left", "letters", "vouch"},        // read again
	9:  {"owners", "asked", "unread", "present", "letters", "vouch"},                         // take
	10: {"set", "owners", "asked", "unread", "present", "nonce", "left", "letters"},          // vouch
}
