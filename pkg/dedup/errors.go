package dedup

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Quarantine refuses claims: the store may have lost some, and inserts that
// were allowed by them may still start or run.
type Quarantine struct {
	Since, Until time.Time // on the store's clock; Until is the earliest end
	Reason       string
}

func (e *Quarantine) Error() string {
	return fmt.Sprintf("the dedup store is in quarantine since %s, at least until %s: %s",
		e.Since.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339), e.Reason)
}

// EpochChanged voids a ticket in some hash-tag groups: claim afresh.
type EpochChanged struct {
	Groups   []int
	Old, New uint64 // of the first of the groups
}

func (e *EpochChanged) Error() string {
	return fmt.Sprintf("the epoch of the dedup store changed from %d to %d in groups %v: claims made under the old one are void", e.Old, e.New, e.Groups)
}

// Swapped refuses a call: the marker names another table than this sink. Read
// the table's UUID from ClickHouse, then Adopt it.
type Swapped struct {
	Marker, Ours [16]byte
}

func (e *Swapped) Error() string {
	return fmt.Sprintf("the dedup store knows the table by UUID %s, this sink by %s: it was dropped and created again, or exchanged",
		hex.EncodeToString(e.Marker[:]), hex.EncodeToString(e.Ours[:]))
}

// RouteChanged refuses a domain whose keys were built otherwise.
type RouteChanged struct {
	Table, Marker, Ours string // the definition that the marker has, and ours
	Keys                string // matches the domain's keys in SCAN
}

func (e *RouteChanged) Error() string { return e.Problem() + "; " + e.Cure("") }

// Problem is what stands against the route.
func (e *RouteChanged) Problem() string {
	return fmt.Sprintf("the dedup store remembers keys of table %s under another definition: %s", e.Table, e.differences())
}

// differences names the parts that were something else. What the store's slots are is told by event_time.
func (e *RouteChanged) differences() string {
	parts := func(definition string) map[string]string {
		out := map[string]string{}
		for part := range strings.FieldsSeq(definition) {
			name, value, _ := strings.Cut(part, "=")
			out[name] = cmp.Or(value, "none")
		}
		return out
	}
	theirs, ours := parts(e.Marker), parts(e.Ours)
	var list []string
	for _, name := range []string{"key", "event_time", "ignore", "hash"} {
		if theirs[name] != ours[name] {
			list = append(list, fmt.Sprintf("%s was %s and is %s", name, cmp.Or(theirs[name], "unknown"), cmp.Or(ours[name], "unknown")))
		}
	}
	if list == nil {
		return fmt.Sprintf("it was (%s) and is (%s)", e.Marker, e.Ours)
	}
	return strings.Join(list, ", ")
}

// Cure is what an operator can do. forget is the command that deletes the keys, "": the pattern has to do.
func (e *RouteChanged) Cure(forget string) string {
	if forget == "" {
		forget = "stop every sink that writes this table and delete the keys in Redis that match " + e.Keys
	}
	return "give routes.key, routes.event_time and routes.ignore back what they were, in every route into the table; or name another table; or, to go on with the new definition: " +
		forget + " (" + afterForgetting + ")"
}

// Unfit is a store that can't keep the promise, or a call that it can't serve,
// until an operator mends it.
type Unfit struct {
	Problem, Cure string
	Err           error
}

func (e *Unfit) Error() string {
	text := "the dedup store is unfit: " + e.Problem
	if e.Cure != "" {
		text += "; " + e.Cure
	}
	return text
}

func (e *Unfit) Unwrap() error { return e.Err }

// Waiting is a state of the server that passes, or that an operator ends
// without touching the sink: repeat the call with the same nonce.
type Waiting struct {
	Reason, Cure string
	Err          error
}

func (e *Waiting) Error() string {
	text := "the dedup store can't answer now: " + e.Reason
	if e.Cure != "" {
		text += "; " + e.Cure
	}
	return text
}

func (e *Waiting) Unwrap() error { return e.Err }

// away is a call that got no answer of the server at all: the network's error
// alone ("EOF") would not tell whose it is.
func away(servers string, err error) error {
	var answer redis.Error
	if err == nil || errors.As(err, &answer) {
		return err
	}
	return fmt.Errorf("redis %s: %w", servers, err)
}

// explain gives the errors of Redis that have a known cause their type. All
// others stay what they are: unknown, so the same call is sent again.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var unfit *Unfit
	var waiting *Waiting
	if errors.As(err, &unfit) || errors.As(err, &waiting) {
		return err
	}
	text := strings.TrimPrefix(err.Error(), "ERR ")
	starts := func(prefix string) bool { return strings.HasPrefix(text, prefix) }
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case starts("NOAUTH"):
		return &Unfit{"Redis asks for a password (NOAUTH)", "set redis.password, and redis.username for an ACL user", err}
	case starts("WRONGPASS"), has("AUTH called without any password configured"), has("invalid password"):
		return &Unfit{"Redis refuses the user or password (" + text + ")", "correct redis.username and redis.password", err}
	case starts("NOPERM"), has("can't run this command"), has("can't access at least one of the keys"), has("ACL failure in script"):
		return &Unfit{"the Redis user lacks a permission (" + text + ")",
			"ACL SETUSER <user> ~osink:* +@hash +@string +@keyspace +@scripting +@connection +info +time +role +config|get +cluster", err}
	case starts("OOM"):
		return &Waiting{"Redis has reached maxmemory (OOM) and evicts nothing, as it must", "raise maxmemory, or lower redis.horizon; claims go on by themselves", err}
	case starts("LOADING"):
		return &Waiting{"Redis is loading its data", "", err}
	case starts("READONLY"):
		return &Waiting{"the server is a replica; the connection is dropped to find the master", "", err}
	case starts("MASTERDOWN"), starts("CLUSTERDOWN"), starts("TRYAGAIN"):
		return &Waiting{"Redis says " + text, "", err}
	case starts("NOREPLICAS"):
		return &Waiting{"fewer replicas are connected than min-replicas-to-write asks for", "bring the replicas back", err}
	case starts("MISCONF"):
		return &Waiting{"Redis can't save and refuses writes (MISCONF)", "see Redis's log: disk full or not writable", err}
	case starts("BUSY"):
		return &Waiting{"another script runs in Redis (BUSY)", "", err}
	case has("access a non local key in a cluster node"):
		return &Waiting{"a slot of the domain is migrating between cluster nodes", "it goes on when the migration has ended", err}
	case has("cluster support disabled"):
		return &Unfit{"redis.mode is cluster, but the server is not in a cluster", "set redis.mode: standalone", err}
	case has("DB index is out of range"):
		return &Unfit{"Redis has no database of the number that redis.db names (" + text + ")", "correct redis.db; CONFIG GET databases tells how many the server has, counted from 0", err}
	case starts("MOVED"), starts("CROSSSLOT"):
		return &Unfit{"the server is a cluster node (" + text + ")", "set redis.mode: cluster", err}
	}
	return err
}
