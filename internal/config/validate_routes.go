package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oncesink/oncesink/internal/nearmiss"
)

var (
	identifier = regexp.MustCompile("^[^\\s.`'\"\\\\(),;]+$")
	topicName  = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`) // Kafka's own rule
)

func (c *Config) validateRoutes(p *problems) {
	if len(c.Routes) == 0 {
		p.at("routes", "is missing: at least one route leads topics into a table")
	}
	for i := range c.Routes {
		c.Routes[i].validate(p, fmt.Sprintf("routes[%d]", i))
	}
	for i := range c.Routes {
		c.validateDeadLetter(p, i)
		for j := range i {
			c.validatePair(p, j, i)
		}
	}
}

func (r *Route) validate(p *problems, field string) {
	r.validateTopics(p, field)
	if r.Table == "" {
		p.at(field+".table", "is missing: name the target table")
	} else if parts := strings.Split(r.Table, "."); len(parts) > 2 || slices.ContainsFunc(parts, func(s string) bool { return !identifier.MatchString(s) }) {
		p.at(field+".table", "%q is no name of a table: write table or database.table, without quotes", r.Table)
	}
	if r.Format == "avro" || r.Format == "protobuf" {
		p.at(field+".format", "%s is not in this version: use json", r.Format)
	} else {
		oneOf(p, field+".format", r.Format, "json", "avro", "protobuf")
	}
	if len(r.Key) == 0 {
		p.at(field+".key", "is missing: the columns that make two records the same row")
	}
	columnList(p, field+".key", r.Key)
	columnList(p, field+".ignore", r.Ignore)
	for i, name := range r.Ignore {
		if slices.Contains(r.Key, name) {
			p.at(fmt.Sprintf("%s.ignore[%d]", field, i), "%s is part of the key, which can't be ignored", name)
		}
	}
	if r.EventTime != "" && len(r.Key) > 0 && !slices.Contains(r.Key, r.EventTime) {
		p.at(field+".event_time", "%s must be part of the key (%s): two records of one key must have one time%s", r.EventTime, words(r.Key), nearmiss.Hint(r.EventTime, r.Key))
	}
	oneOf(p, field+".unknown_fields", r.UnknownFields, "reject", "ignore")
	oneOf(p, field+".missing_fields", r.MissingFields, "reject", "zero")
	if oneOf(p, field+".on_conflict", r.OnConflict, "dead_letter", "stop") && r.OnConflict == "dead_letter" && r.DeadLetter == "" {
		p.at(field+".dead_letter", "is missing: on_conflict is dead_letter; name a topic, or set on_conflict: stop")
	}
	if r.DeadLetter != "" {
		validateTopic(p, field+".dead_letter", r.DeadLetter)
	}
	for _, column := range slices.Sorted(maps.Keys(r.Columns)) {
		r.validateColumn(p, fmt.Sprintf("%s.columns.%s", field, column), column)
	}
}

func (r *Route) validateTopics(p *problems, field string) {
	switch {
	case len(r.Topics) == 0 && r.TopicPattern == "":
		p.at(field+".topics", "is missing: name topics, or a topic_pattern")
	case len(r.Topics) > 0 && r.TopicPattern != "":
		p.at(field+".topic_pattern", "stands beside topics; a route has one of them")
	}
	for i, t := range r.Topics {
		at := fmt.Sprintf("%s.topics[%d]", field, i)
		if slices.Contains(r.Topics[:i], t) {
			p.at(at, "%s stands here twice", t)
		}
		validateTopic(p, at, t)
	}
	if r.TopicPattern != "" {
		pattern, err := regexp.Compile(r.TopicPattern)
		if err != nil {
			p.at(field+".topic_pattern", "is no regular expression (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		r.pattern = pattern
	}
}

func validateTopic(p *problems, field, topic string) {
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		hint := ""
		if strings.ContainsAny(topic, "^$*+?[(\\|") {
			hint = "; for a pattern use topic_pattern"
		}
		p.at(field, "%q is no name of a topic: letters, digits, '.', '_' and '-', at most 249%s", topic, hint)
	}
}

func columnList(p *problems, field string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case strings.TrimSpace(name) == "":
			p.at(at, "is empty; a column is wanted")
		case slices.Contains(names[:i], name):
			p.at(at, "%s stands here twice", name)
		}
	}
}

// fromWords are what a column can take that is no field of the record's value.
var fromWords = []string{"$topic", "$partition", "$offset", "$timestamp", "$key", "$header."}

func (r *Route) validateColumn(p *problems, field, column string) {
	from := r.Columns[column].From
	switch {
	case from == "":
		p.at(field+".from", "is missing: a field, or one of %sNAME", words(fromWords))
	case strings.HasPrefix(from, "$header."):
		if from == "$header." {
			p.at(field+".from", "names no header: $header.NAME")
		}
	case strings.HasPrefix(from, "$"):
		if !slices.Contains(fromWords, from) {
			p.at(field+".from", "%q is none of: %sNAME%s", from, words(fromWords), nearmiss.Hint(from, fromWords))
		}
	case slices.Contains(strings.Split(from, "."), ""):
		p.at(field+".from", "%q has an empty name between its dots", from)
	}
	// A key that holds the record's own place is never met twice: re-sent records would all be new.
	if (from == "$offset" || from == "$partition") && slices.Contains(r.Key, column) {
		p.at(field+".from", "%s is part of the key and %s differs for each re-sent record: nothing would ever be a duplicate", column, from)
	}
}

// validateDeadLetter keeps the sink from reading its own dead letters. A pattern that meets one is no problem: it leaves them out.
func (c *Config) validateDeadLetter(p *problems, i int) {
	dead := c.Routes[i].DeadLetter
	if dead == "" {
		return
	}
	for j := range c.Routes {
		if c.Routes[j].lists(dead) {
			p.at(fmt.Sprintf("routes[%d].dead_letter", i), "%s is also read by routes[%d].topics: dead letters would come round for ever; name another topic", dead, j)
		}
	}
}

// validatePair checks two routes into one table: they share its keys, so they must mean the same by them.
func (c *Config) validatePair(p *problems, i, j int) {
	a, b := &c.Routes[i], &c.Routes[j]
	if a.Table == "" || c.Qualified(a.Table) != c.Qualified(b.Table) {
		return
	}
	at := fmt.Sprintf("routes[%d]", j)
	same := func(what string, equal bool) {
		if !equal {
			p.at(at+"."+what, "differs from that of routes[%d], and both write %s: routes into one table share its keys and need the same %s", i, c.Qualified(a.Table), what)
		}
	}
	same("key", slices.Equal(a.Key, b.Key))
	same("event_time", a.EventTime == b.EventTime)
	same("ignore", slices.Equal(slices.Sorted(slices.Values(a.Ignore)), slices.Sorted(slices.Values(b.Ignore))))
	for _, t := range b.Topics {
		if a.lists(t) || a.matches(t) && !c.excluded(t) {
			p.at(at+".topics", "%s goes into %s by routes[%d] already", t, c.Qualified(a.Table), i)
		}
	}
	for _, t := range a.Topics {
		if b.matches(t) && !c.excluded(t) {
			p.at(at+".topic_pattern", "meets %s, which goes into %s by routes[%d] already", t, c.Qualified(a.Table), i)
		}
	}
	if a.TopicPattern != "" && a.TopicPattern == b.TopicPattern {
		p.at(at+".topic_pattern", "is that of routes[%d], into the same table", i)
	}
}

// Qualified is a table's name with its database.
func (c *Config) Qualified(table string) string {
	if strings.Contains(table, ".") {
		return table
	}
	return c.ClickHouse.Database + "." + table
}
