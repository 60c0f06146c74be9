package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// rowTTL is one element of a table's TTL clause.
type rowTTL struct {
	text string // as the server writes it
	expr string // when
	rest string // what: " WHERE …", " TO DISK …", …; "": the row leaves
	what string // the keyword of rest
}

func rowTTLs(engineFull string) []rowTTL {
	_, text, _ := clause(engineFull, "TTL")
	var out []rowTTL
	for _, part := range splitExpressions(text) {
		at, word := findWords(part, "DELETE", "WHERE", "TO DISK", "TO VOLUME", "RECOMPRESS", "GROUP BY")
		out = append(out, rowTTL{text: part, expr: strings.TrimSpace(part[:at]), rest: strings.TrimRight(" "+part[at:], " "), what: word})
		if word == "GROUP BY" {
			break // the parts behind it may be its own
		}
	}
	return out
}

// ttl judges what leaves the table, or changes in it, by itself.
//
// A row that has left is unknown to the table. While the store remembers its key nothing follows. Once it doesn't, because the horizon has passed or the store
// was lost, a record that is sent again is new: its row comes back, which is no double in the table, and is counted a second time by every view.
func (c *checker) ttl(ctx context.Context, r *replicaState, d *describedTable) error {
	c.columnTTL(d.create)
	ttls := rowTTLs(d.engineFull)
	var kept []string // of the clause, with what is at fault mended
	var leaves []rowTTL
	bad := false
	for _, ttl := range ttls {
		switch ttl.what {
		case "GROUP BY":
			c.add(SeverityError, "ttl_rollup", c.modifyTTL(kept), "TTL %s of %s makes one row of several: keys leave the table, and values change", ttl.text, c.t)
			return nil
		case "TO DISK", "TO VOLUME", "RECOMPRESS":
			kept = append(kept, ttl.text)
			continue
		}
		leaves = append(leaves, ttl)
		if len(c.t.Views) == 0 {
			continue
		}
		life, known, err := c.lifetime(ctx, r, ttl.expr)
		if err != nil {
			return err
		}
		if known && life > c.use.Horizon {
			kept = append(kept, ttl.text)
			continue
		}
		bad = true
		if c.use.EventTime != "" {
			kept = append(kept, fmt.Sprintf("%s + toIntervalDay(%d)%s", c.eventTime(), int(c.use.Horizon/(24*time.Hour))+1, ttl.rest))
		}
	}
	if len(leaves) == 0 {
		return nil
	}
	when := make([]string, len(leaves))
	for i, ttl := range leaves {
		when[i] = ttl.text
	}
	by := strings.Join(when, ", ")
	if !bad {
		what := "becomes a row again"
		if len(c.t.Views) > 0 {
			what = "counts again in " + c.viewNames()
		}
		c.add(SeverityWarning, "ttl", "send no record again that is older than this TTL, or "+c.modifyTTL(slices.DeleteFunc(slices.Clone(kept), func(k string) bool { return slices.Contains(when, k) })),
			"rows leave %s by TTL %s: a record that is sent again after that, when the store has forgotten its key (redis.horizon, or a lost store), %s", c.t, by, what)
		return nil
	}
	why := "it has to hang on routes.event_time (" + c.use.EventTime + ") alone and be longer than redis.horizon (" + c.use.Horizon.String() + ")"
	if c.use.EventTime == "" {
		why = "without routes.event_time there is no age at which a record is surely not sent again"
	}
	c.add(SeverityError, "ttl_view", c.modifyTTL(kept),
		"rows leave %s by TTL %s: if the store is lost, a record that is sent again after that is new, and counts twice in %s; %s", c.t, by, c.viewNames(), why)
	return nil
}

func (c *checker) viewNames() string {
	var names []string
	for _, v := range c.t.Views {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

func (c *checker) modifyTTL(kept []string) string {
	if len(kept) == 0 {
		return "ALTER TABLE " + c.t.quoted() + " REMOVE TTL"
	}
	return "ALTER TABLE " + c.t.quoted() + " MODIFY TTL " + strings.Join(kept, ", ")
}

// eventTime is the event time as an expression of type DateTime.
func (c *checker) eventTime() string {
	name := quoteName(c.use.EventTime)
	column, err := c.t.column(c.use.EventTime)
	switch {
	case err != nil || column.Type == "DateTime" || column.Type == "Date":
		return name
	case strings.Contains(column.Type, "Int") && strings.HasSuffix(c.use.EventTime, "_ms"):
		return "toDateTime(intDiv(" + name + ", 1000))"
	}
	return "toDateTime(" + name + ")"
}

// lifetime is how long after its event time a row leaves at the earliest, as the server computes it for the hours of a year. known is false when the expression
// asks for another column, or says nothing that can be compared.
func (c *checker) lifetime(ctx context.Context, r *replicaState, expr string) (life time.Duration, known bool, err error) {
	column, err := c.t.column(c.use.EventTime)
	if err != nil {
		return 0, false, nil //nolint:nilerr // no event time, or none that the table has, which is told elsewhere
	}
	const second = "oncesink_second"
	value, of := "toDateTime("+second+")", "toInt64(toUnixTimestamp("+quoteName(column.Name)+"))"
	if strings.Contains(column.Type, "Int") {
		value, of = second, second
		if strings.HasSuffix(column.Name, "_ms") {
			value += " * 1000"
		}
	}
	// 3,607 s is a prime number: the hours' minutes and seconds differ.
	rows, err := c.s.read(ctx, r, 1, fmt.Sprintf("SELECT toString(min(toInt64(toUnixTimestamp(%s)) - %s)) FROM (SELECT toInt64(toUnixTimestamp(now())) - 3607 * arrayJoin(range(8784)) AS %s, CAST(%s AS %s) AS %s)",
		expr, of, second, value, column.Type, quoteName(column.Name)))
	var ex *Exception
	if errors.As(err, &ex) {
		return 0, false, nil
	}
	if err != nil || len(rows) == 0 {
		return 0, false, err
	}
	return time.Duration(number(rows[0][0])) * time.Second, true, nil
}

// columnTTL judges values that turn into their column's default after a time.
func (c *checker) columnTTL(create string) {
	for _, definition := range columnDefinitions(create) {
		for _, column := range c.t.Columns {
			rest, ok := strings.CutPrefix(definition, quoteName(column.Name)+" ")
			if !ok {
				continue
			}
			if _, word := findWords(rest, "TTL"); word == "" {
				continue
			}
			cure := fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s REMOVE TTL", c.t.quoted(), quoteName(column.Name))
			if slices.Contains(c.use.Key, column.Name) {
				c.add(SeverityError, "ttl_key", cure, "key column %s of %s has a TTL, after which it becomes its default: its key is gone, and others become one", column.Name, c.t)
				continue
			}
			c.add(SeverityWarning, "ttl_column", cure, "column %s of %s has a TTL, after which its value becomes the column's default", column.Name, c.t)
		}
	}
}

// columnDefinitions are the elements between the brackets of a CREATE TABLE.
func columnDefinitions(create string) []string {
	at, _ := findWords(create, "ENGINE")
	head := create[:at]
	open, end := -1, strings.LastIndexByte(head, ')')
	for i, quoted := 0, false; i < len(head) && open < 0; i++ {
		switch c := head[i]; {
		case quoted && c == '\\':
			i++
		case c == '`':
			quoted = !quoted
		case c == '(' && !quoted:
			open = i
		}
	}
	if open < 0 || end < open {
		return nil
	}
	return splitExpressions(head[open+1 : end])
}
