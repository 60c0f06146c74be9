package writer

import (
	"fmt"
	"slices"
	"strings"
)

// mergeKind is what an engine of the MergeTree family does to rows of one sorting key when it merges: "Replacing", "Summing", …; "" leaves them alone.
func mergeKind(engine string) string {
	kind, ok := strings.CutSuffix(engine, "MergeTree")
	if !ok {
		return ""
	}
	for _, where := range []string{"Replicated", "Shared"} {
		kind = strings.TrimPrefix(kind, where)
	}
	return kind
}

// merging judges an engine that makes one row of several. What it does happens later and in the background: nothing fails, rows are gone.
func (c *checker) merging(engineFull string) {
	t, kind := c.t, mergeKind(c.t.Engine)
	plain := strings.Replace(t.Engine, kind, "", 1)
	switch kind {
	case "":
		return
	case "Summing":
		c.add(SeverityError, "engine_summing", c.recreate(engineFull, plain, nil),
			"%s is of engine %s, which removes a row whose sums are all 0 when it merges, be it the only one of its key: let a view sum, from a table of engine %s", t, t.Engine, plain)
		return
	case "Collapsing", "VersionedCollapsing":
		c.add(SeverityError, "engine_collapsing", c.recreate(engineFull, plain, nil),
			"%s is of engine %s, which removes pairs of rows: the row that cancels another has its key, and of one key only the first is written", t, t.Engine)
		return
	case "Graphite":
		c.add(SeverityError, "engine_graphite", c.recreate(engineFull, plain, nil), "%s is of engine %s, which rounds times and makes one row of several", t, t.Engine)
		return
	}
	sorted := splitExpressions(t.SortingKey)
	var missing []string
	for _, name := range c.use.Key {
		if !slices.ContainsFunc(sorted, func(expr string) bool { return unquoteName(expr) == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		c.add(SeverityInfo, "engine_merges", "", "%s is of engine %s: every key is in it once, so merging changes nothing", t, t.Engine)
		return
	}
	c.add(SeverityError, "engine_merges", c.recreate(engineFull, t.Engine, missing),
		"%s is of engine %s ORDER BY (%s), which makes one row of those that agree in it: keys that differ in %s only would become one row", t, t.Engine, t.SortingKey, strings.Join(missing, ", "))
}

// recreate are the statements that move the rows to a table with another engine, or with more columns in its sorting key. What was merged doesn't come back.
func (c *checker) recreate(engineFull, engine string, missing []string) string {
	t := c.t
	before, order, after := clause(engineFull, "ORDER BY")
	end, _ := findWords(before, clauseWords...)
	name, rest := strings.TrimSpace(before[:end]), before[end:]
	if engine != t.Engine {
		name = engine + keeperArguments(name)
	}
	if len(missing) > 0 {
		sorted := splitExpressions(t.SortingKey)
		at := len(sorted)
		if _, primary := findWords(before, "PRIMARY KEY"); primary == "" { // else it has to stay the beginning
			at = 0
			for at < len(sorted) && slices.Contains(c.use.Key, unquoteName(sorted[at])) {
				at++
			}
		}
		for i, column := range missing {
			sorted = slices.Insert(sorted, at+i, quoteName(column))
		}
		order = "(" + strings.Join(sorted, ", ") + ")"
	}
	target := *t
	target.Name += "_new"
	return fmt.Sprintf("CREATE TABLE %s AS %s ENGINE = %s ORDER BY %s %s; INSERT INTO %[1]s SELECT * FROM %[2]s; EXCHANGE TABLES %[1]s AND %[2]s",
		target.quoted(), t.quoted(), strings.TrimSpace(name+" "+rest), order, after)
}

// keeperArguments are those of a replicated engine that name its place: the literals that it begins with.
func keeperArguments(engine string) string {
	_, list, ok := strings.Cut(engine, "(")
	if !ok {
		return ""
	}
	var places []string
	for _, arg := range splitExpressions(strings.TrimSuffix(list, ")")) {
		if !strings.HasPrefix(arg, "'") {
			break
		}
		places = append(places, arg)
	}
	if len(places) < 2 { // GraphiteMergeTree('rollup')
		return ""
	}
	return "(" + strings.Join(places[:2], ", ") + ")"
}
