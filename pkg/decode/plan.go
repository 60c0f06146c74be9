package decode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// JSON is the plan by which records of a route become rows of its table. It
// never changes and may be shared by goroutines; what changes is in Blocks.
type JSON struct {
	cols   []colPlan
	root   *object
	meta   []metaPlan
	key    []int   // indexes into cols
	arrays [][]int // columns whose arrays must be of one length, see lengths
	event  int     // index into cols, -1: none
	unit   time.Duration
	future int64
	lax    bool
	zero   bool // absent fields may become the type's default
	loc    *time.Location
	hasher Hasher
	seeder FieldSeeder // the hasher, or nil
}

type colPlan struct {
	Column
	typ      *typeName
	source   string
	key      bool
	computed bool // the server must evaluate its DEFAULT
	nullable bool
}

// metaPlan is a column that is filled from the record's metadata.
type metaPlan struct {
	col    int
	what   string // "$topic" …; "$header" with its name
	header string
}

// object and field are the names that are looked for in an object of the
// record, and what becomes of their values.
type object struct {
	fields []*field
	byName map[string]*field
}

type field struct {
	name   string
	path   string // from the record's root, for messages
	quoted string // the name as a compact record has it, colon included
	cols   []int
	kids   *object // sub-paths
	// silent fields are no part of the fingerprint.
	silent bool
	// unknown fields are only counted.
	unknown bool
	count   int64
}

// neverPredicted is no text that a name can begin with.
const neverPredicted = "\x00"

func newField(name, path string) *field {
	f := &field{name: name, path: path, quoted: `"` + name + `":`}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' }) {
		f.quoted = neverPredicted // a record has to spell it otherwise
	}
	return f
}

func (o *object) lookup(name []byte) *field {
	if o == nil {
		return nil
	}
	return o.byName[string(name)]
}

func (f *field) paths() *object {
	if f == nil {
		return nil
	}
	return f.kids
}

// add returns the field at a path below o, made if need be.
func (o *object) add(path []string, prefix string) *field {
	f := o.byName[path[0]]
	if f == nil {
		f = newField(path[0], prefix+path[0])
		o.fields = append(o.fields, f)
		if o.byName == nil {
			o.byName = map[string]*field{}
		}
		o.byName[f.name] = f
	}
	if len(path) == 1 {
		return f
	}
	if f.kids == nil {
		f.kids = &object{}
	}
	return f.kids.add(path[1:], f.path+".")
}

// splitPath takes a path apart at its dots; \. is a dot inside a name.
func splitPath(path string) []string {
	parts := []string{""}
	for i := 0; i < len(path); i++ {
		last := len(parts) - 1
		switch {
		case path[i] == '\\' && i+1 < len(path) && (path[i+1] == '.' || path[i+1] == '\\'):
			i++
			parts[last] += path[i : i+1]
		case path[i] == '.':
			parts = append(parts, "")
		default:
			parts[last] += path[i : i+1]
		}
	}
	return parts
}

// NewJSON checks the options against the table and returns the plan, or all
// that is wrong with them.
func NewJSON(o Options) (*JSON, error) {
	d := &JSON{
		root: &object{}, event: -1, unit: o.EventTimeUnit, future: o.MaxFutureMs,
		lax: o.UnknownFields == IgnoreUnknown, zero: o.MissingFields == ZeroMissing, loc: o.TimeZone, hasher: o.Hasher,
	}
	if d.loc == nil {
		d.loc = time.UTC
	}
	if d.unit == 0 {
		d.unit = time.Millisecond
	}
	d.seeder, _ = o.Hasher.(FieldSeeder)
	var errs problems
	if o.Hasher == nil {
		errs.add("no Hasher")
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		errs.add("this host is big endian; columns are sent as they lie in memory, which must be little endian")
	}
	for _, c := range o.Columns {
		d.addColumn(c, &errs)
	}
	d.arrays = d.arraysOf()
	d.addSources(o.From, &errs)
	d.addKey(o.Key, &errs)
	d.addEventTime(o.EventTime, &errs)
	d.addIgnored(o.Ignore, &errs)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return d, nil
}

type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (d *JSON) addColumn(c Column, errs *problems) {
	if d.column(c.Name) >= 0 {
		errs.add("column %q is listed twice", c.Name)
		return
	}
	switch c.DefaultKind {
	case "", "DEFAULT":
	case "MATERIALIZED", "ALIAS":
		return // the server computes these, whatever is sent
	case "EPHEMERAL":
		errs.add("column %q is EPHEMERAL: its value would be used and then lost, so that a row could not be compared or sent again; remove the column or give it another default kind", c.Name)
		return
	default:
		errs.add("column %q: default kind %q is not known", c.Name, c.DefaultKind)
		return
	}
	p := colPlan{Column: c, computed: c.DefaultKind == "DEFAULT" && c.DefaultExpr != ""}
	typ, err := parseType(c.Type)
	if err == nil {
		typ, err = typ.plain()
	}
	if err == nil {
		_, err = newColumn(typ, d.setup(c.Name))
	}
	if err != nil {
		errs.add("column %q: %w", c.Name, err)
	}
	p.typ = typ
	p.nullable = err == nil && typ.nullable()
	d.cols = append(d.cols, p)
}

func (d *JSON) setup(path string) setup { return setup{d.loc, d.lax, d.zero, path} }

func (d *JSON) column(name string) int {
	return slices.IndexFunc(d.cols, func(c colPlan) bool { return c.Name == name })
}

func (d *JSON) addSources(from map[string]string, errs *problems) {
	for _, name := range sortedKeys(from) {
		if d.column(name) < 0 {
			errs.add("columns.%s: the table has no such column to fill", name)
		}
	}
	for i := range d.cols {
		c := &d.cols[i]
		source, given := from[c.Name]
		switch {
		case !given:
			// A name is not a path: Nested columns have dots in theirs.
			c.source = c.Name
			f := d.root.add([]string{c.Name}, "")
			f.cols = append(f.cols, i)
		case strings.HasPrefix(source, "$"):
			c.source = source
			d.addMeta(i, source, errs)
		default:
			c.source = source
			path := splitPath(source)
			if slices.Contains(path, "") || len(path) > MaxDepth {
				errs.add("columns.%s.from: %q is no path", c.Name, source)
				continue
			}
			f := d.root.add(path, "")
			f.cols = append(f.cols, i)
		}
	}
}

func (d *JSON) addMeta(i int, source string, errs *problems) {
	c := &d.cols[i]
	m := metaPlan{col: i, what: source}
	if c.typ == nil {
		return
	}
	base := c.typ
	if base.name == "Nullable" && len(base.args) == 1 && base.args[0].typ != nil {
		base = base.args[0].typ
	}
	number := (strings.HasPrefix(base.name, "Int") || strings.HasPrefix(base.name, "UInt")) && !intervals[base.name]
	fits := true
	switch {
	case source == "$timestamp":
		fits = number || base.name == "DateTime" || base.name == "DateTime64"
	case source == "$partition" || source == "$offset":
		fits = number
	case source == "$topic":
		fits = base.name == "String" || base.name == "FixedString" || strings.HasPrefix(base.name, "Enum") || base.name == "LowCardinality" && strings.Contains(base.text, "String")
	case source == "$key":
	case strings.HasPrefix(source, "$header.") && len(source) > len("$header."):
		m.what, m.header = "$header", source[len("$header."):]
	default:
		errs.add("columns.%s.from: %q is not one of $timestamp, $topic, $partition, $offset, $key, $header.NAME", c.Name, source)
		return
	}
	if !fits {
		errs.add("columns.%s.from: %s does not go into %s", c.Name, source, c.Type)
	}
	d.meta = append(d.meta, m)
}

func (d *JSON) addKey(key []string, errs *problems) {
	if len(key) == 0 {
		errs.add("key: no columns named")
	}
	for _, name := range key {
		i := d.column(name)
		if i < 0 {
			errs.add("key: the table has no column %q that is sent", name)
			continue
		}
		c := &d.cols[i]
		if c.key {
			errs.add("key: column %q is named twice", name)
		}
		if c.typ != nil && c.typ.composite() {
			errs.add("key: column %q is %s; a key column holds one value", name, c.Type)
		}
		c.key = true
		d.key = append(d.key, i)
		d.silence(i)
	}
}

// silence takes the field that a column is read from out of the fingerprint.
func (d *JSON) silence(col int) {
	var in func(o *object)
	in = func(o *object) {
		for _, f := range o.fields {
			if slices.Contains(f.cols, col) {
				f.silent = true
			}
			if f.kids != nil {
				in(f.kids)
			}
		}
	}
	in(d.root)
}

func (d *JSON) addEventTime(name string, errs *problems) {
	if name == "" {
		return
	}
	i := d.column(name)
	if i < 0 {
		errs.add("event_time: the table has no column %q that is sent", name)
		return
	}
	c := d.cols[i]
	if !c.key {
		errs.add("event_time: column %q must be part of the key", name)
	}
	if strings.HasSuffix(name, "_ms") {
		d.unit = time.Millisecond
	}
	if d.unit < 0 || d.unit > time.Second || time.Second%d.unit != 0 {
		errs.add("event_time: unit %s is not one of 1s, 1ms, 1us, 1ns", d.unit)
	}
	d.event = i
	if c.typ == nil {
		return
	}
	if col, err := newColumn(c.typ, d.setup(c.source)); err == nil && (newClock(col, d.unit) == nil || strings.Contains(c.typ.text, "Interval")) {
		errs.add("event_time: column %q is %s; it must be an integer, a Date or a DateTime", name, c.Type)
	}
}

func (d *JSON) addIgnored(ignore []string, errs *problems) {
	for _, name := range ignore {
		i := d.column(name)
		if i >= 0 {
			d.silence(i)
		}
		path := splitPath(name)
		if slices.Contains(path, "") {
			errs.add("ignore: %q is no path", name)
			continue
		}
		if f := d.root.byName[name]; f != nil { // a name with dots in it
			f.silent = true
			continue
		}
		if i >= 0 {
			continue // the column comes from elsewhere; no field of that name is read
		}
		if !d.lax && !d.root.has(path) {
			errs.add("ignore: %q is neither a column nor a field that one is filled from", name)
			continue
		}
		d.root.add(path, "").silent = true
	}
}

// has tells whether the path, or one that begins with it or that it begins
// with, is read.
func (o *object) has(path []string) bool {
	f := o.byName[path[0]]
	return f != nil && (len(path) == 1 || len(f.cols) > 0 || f.kids != nil && f.kids.has(path[1:]))
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
