package dedup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// CheckDomain reads the domain's markers and says whether Open would refuse this definition of its keys. It writes nothing. A store that gives no answer is no
// finding of its own: Check tells.
func CheckDomain(ctx context.Context, cfg Config, d Domain) []Finding {
	h, err := newHead(cfg, d)
	if err != nil {
		return []Finding{asFinding("redis_domain", err)}
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil
	}
	defer func() { _ = client.Close() }()
	if client.Ping(ctx).Err() != nil {
		return nil
	}
	pipe := client.Pipeline()
	var markers [MaxGroups]*redis.SliceCmd
	for g := range markers {
		markers[g] = pipe.HMGet(ctx, markerKey(h.name, g), "v", "name", "route", "groups")
	}
	_, _ = pipe.Exec(ctx) // each reply is looked at
	known := ""
	for _, cmd := range markers {
		row, err := cmd.Result()
		if err != nil {
			return []Finding{asFinding("redis_domain", err)}
		}
		var field [4]string
		for i := range field {
			field[i], _ = row[i].(string)
		}
		if field[0] == "" {
			continue
		}
		if err := judge(h, cfg, field, &known); err != nil {
			f := asFinding("redis_domain", err)
			var route *RouteChanged
			switch {
			case errors.As(err, &route):
				f.Cure = route.Cure(DeleteKeys(cfg, keyPattern(h.name)))
			case f.Cure == "":
				f.Cure = DeleteKeys(cfg, keyPattern(h.name))
			}
			return []Finding{f}
		}
	}
	return nil
}

// judge compares a marker (format, name, route, hash-tag groups) as the scripts do.
func judge(h *head, cfg Config, marker [4]string, groups *string) error {
	if *groups == "" {
		*groups = marker[3]
	}
	switch {
	case marker[0] != strconv.Itoa(storeFormat):
		return unknownFormat(marker[0], h.name)
	case marker[1] != h.name:
		return sameID(marker[1], h.name)
	case marker[2] != h.route:
		return &RouteChanged{Table: h.name, Marker: marker[2], Ours: h.route, Keys: keyPattern(h.name)}
	case cfg.Mode != "cluster" && marker[3] != "1":
		return &Unfit{Problem: fmt.Sprintf("the domain was laid out for a cluster, in %s hash-tag groups", marker[3]), Cure: "set redis.mode: cluster, and redis.addresses to that cluster"}
	case marker[3] != *groups:
		return &Unfit{Problem: fmt.Sprintf("the domain's markers name %s and %s hash-tag groups: the store was edited or restored in parts", *groups, marker[3])}
	}
	return nil
}

// storeFormat is the version of all that the scripts keep; guard.lua and raise.lua name it too.
const storeFormat = 1

// unknownFormat refuses a domain that another build wrote, an older or a newer one.
func unknownFormat(theirs, name string) error {
	e := &Unfit{Problem: fmt.Sprintf("the keys of table %s were written in format %s, and this build writes format %d", name, theirs, storeFormat)}
	forget := "stop every sink that writes this table, delete the keys in Redis that match " + keyPattern(name) + ", and start sinks of this build only: " + afterForgetting
	if n, err := strconv.Atoi(theirs); err == nil && n < storeFormat {
		e.Cure = "go on with the build that wrote them, or, to change over: " + forget
	} else {
		e.Cure = "run a build as new as the one that wrote them, or, to come back to this one: " + forget
	}
	return e
}

// afterForgetting is what follows when a domain's keys are deleted.
const afterForgetting = "rows stay single, since each key is looked up in the table for one horizon, or until sink warm has run; what differs from a row of before is not told as a conflict then"

func sameID(theirs, ours string) error {
	return &Unfit{Problem: fmt.Sprintf("the tables %s and %s have the same domain id", theirs, ours), Cure: "give one of them another Redis database or server"}
}

// keyPattern matches the keys of a domain, and no others, in Redis's SCAN.
func keyPattern(name string) string { return "osink:{" + domainID(name) + ".*}:*" }

// DeleteKeys is the command that makes the store forget a domain, whose keys match the pattern.
func DeleteKeys(cfg Config, keys string) string {
	cli, batch := "redis-cli", ""
	if len(cfg.Addresses) > 0 {
		if at := strings.LastIndexByte(cfg.Addresses[0], ':'); at > 0 && cfg.Mode != "sentinel" {
			cli += " -h " + strings.Trim(cfg.Addresses[0][:at], "[]") + " -p " + cfg.Addresses[0][at+1:]
		}
	}
	if cfg.DB != 0 {
		cli += fmt.Sprintf(" -n %d", cfg.DB)
	}
	where := ""
	switch cfg.Mode {
	case "cluster":
		cli, batch, where = cli+" -c", " -n 1", ", on each master of the cluster"
	case "sentinel":
		where = ", on the master"
	}
	return fmt.Sprintf("stop every sink that writes this table, then %s --scan --pattern '%s' | xargs -r%s %s unlink%s", cli, keys, batch, cli, where)
}
