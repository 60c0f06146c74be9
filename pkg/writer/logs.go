package writer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// Servers flush their logs every 7.5 s unless told otherwise; what is older than two of these intervals is in the table.
	twoFlushIntervals = 15 * time.Second
	// Within this time no usual TTL has removed anything from a log.
	logsKeep = 24 * time.Hour
	// How much earlier than asked the logs are read: they count whole seconds, on their own clock.
	restartMargin = 2 * time.Second
	// What a replica's clock may differ from the one that a moment was taken from, beside what is measured.
	clockMargin = 100 * time.Millisecond
)

// logState tells whether a system log holds everything that happened from a moment on.
type logState struct {
	complete bool
	flushed  bool   // up to now; otherwise only what is older than twoFlushIntervals
	why      string // it isn't complete
}

// logSince looks whether system.<log> of a replica (behind a balancer: of all of them) has everything since `from`.
func (s *Server) logSince(ctx context.Context, r *replicaState, log string, from time.Time) (logState, error) {
	var state logState
	err := s.flushLogs(ctx, r)
	var ex *Exception
	switch {
	case err == nil:
		state.flushed = true
	case errors.As(err, &ex): // not granted, or not possible here: then time tells
	default:
		return state, err
	}
	uptime, err := s.shortestUptime(ctx, r)
	if err != nil {
		return state, err
	}
	now, uncertainty, err := s.clockOf(ctx, r)
	if err != nil {
		return state, err
	}
	// uptime() counts whole seconds, so the server started at most a second before `started`, and never after it.
	if started := now.Add(-uptime); started.Add(clockMargin + uncertainty).After(from) {
		state.why = fmt.Sprintf("%s started at %s, and what it had not yet logged before is lost", r.addr, started.UTC().Format(time.DateTime))
		return state, nil
	}
	value, err := s.value(ctx, r, "SELECT toString(count()) FROM system.tables WHERE database = 'system' AND name = "+quoteText(log))
	if err != nil {
		return state, err
	}
	if value == "0" {
		state.why = fmt.Sprintf("%s has no system.%s, or %s may not see it", r.addr, log, s.cfg.Username)
		return state, nil
	}
	if now.Sub(from) > logsKeep {
		source, err := s.everywhere(ctx, r, "system."+log)
		if err != nil {
			return state, err
		}
		value, err := s.value(ctx, r, fmt.Sprintf("SELECT toString(count()) FROM (SELECT 1 FROM %s WHERE event_date >= toDate(%d) - 30 AND event_time <= toDateTime(%[2]d) LIMIT 1)", source, from.Unix()))
		if err != nil {
			return denied(state, err)
		}
		if value == "0" {
			state.why = fmt.Sprintf("system.%s of %s doesn't reach back to %s", log, r.addr, from.UTC().Format(time.DateTime))
			return state, nil
		}
	}
	state.complete = true
	return state, nil
}

// denied turns a missing grant into a log that isn't complete.
func denied(state logState, err error) (logState, error) {
	var ex *Exception
	if errors.As(err, &ex) && (ex.Code == 497 || ex.Code == 60) {
		state.complete, state.why = false, ex.Message
		return state, nil
	}
	return state, err
}

func (s *Server) flushLogs(ctx context.Context, r *replicaState) error {
	if s.cfg.Balanced {
		cluster, err := s.cluster(ctx, r)
		if err != nil {
			return err
		}
		return s.do(ctx, r, &request{body: "SYSTEM FLUSH LOGS ON CLUSTER " + quoteName(cluster), result: discard{}})
	}
	err := s.do(ctx, r, &request{body: "SYSTEM FLUSH LOGS query_log, part_log"})
	var ex *Exception
	if errors.As(err, &ex) && ex.Code != 497 { // older servers know only all logs at once; newer ones refuse a log that isn't configured
		err = s.do(ctx, r, &request{body: "SYSTEM FLUSH LOGS"})
	}
	return err
}

// shortestUptime is how long the server, behind a balancer the youngest of them, has been running.
func (s *Server) shortestUptime(ctx context.Context, r *replicaState) (time.Duration, error) {
	body := "SELECT toString(uptime())"
	if s.cfg.Balanced {
		source, err := s.everywhere(ctx, r, "system.asynchronous_metrics")
		if err != nil {
			return 0, err
		}
		body = "SELECT toString(toInt64(min(value))) FROM " + source + " WHERE metric = 'Uptime'"
	}
	value, err := s.value(ctx, r, body)
	if err != nil {
		return 0, err
	}
	return time.Duration(number(value)) * time.Second, nil
}
