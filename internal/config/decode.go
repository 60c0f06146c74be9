package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/oncesink/oncesink/internal/nearmiss"
)

// decoder walks a parsed document into the structs of this package. The library's own decoder stops at the first problem, prints lines of the source
// and can't expand variables after parsing; this one does the opposite of all three.
type decoder struct {
	problems
	env     Lookup
	anchors map[string]ast.Node
}

func newDecoder(env Lookup) *decoder {
	return &decoder{problems: problems{source: source{lines: map[string]int{}, expanded: map[string][2]string{}}}, env: env, anchors: map[string]ast.Node{}}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
	secretType   = reflect.TypeFor[Secret]()
	routeType    = reflect.TypeFor[Route]()
)

func (d *decoder) decode(body ast.Node, into *Config) {
	d.value("", body, reflect.ValueOf(into).Elem())
}

// value decodes one node into one Go value. A null leaves the default, except where it would switch something off unnoticed.
func (d *decoder) value(field string, node ast.Node, v reflect.Value) {
	node = d.resolve(field, node)
	if node == nil {
		return
	}
	if _, isNull := node.(*ast.NullNode); isNull {
		if v.Kind() == reflect.Pointer {
			d.at(field, "is empty, which could mean on or off: write %s: {} for on, or remove the line", last(field))
		}
		return
	}
	switch {
	case v.Type() == durationType, v.Type() == sizeType, v.Type() == secretType:
		d.scalar(field, node, v)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(field, node, v.Elem())
	case v.Kind() == reflect.Struct:
		d.mapping(field, node, v)
	case v.Kind() == reflect.Map:
		d.table(field, node, v)
	case v.Kind() == reflect.Slice:
		d.list(field, node, v)
	default:
		d.scalar(field, node, v)
	}
}

// resolve looks through tags, anchors and aliases. A mapping that contains its own alias ends at the first field that is no mapping.
func (d *decoder) resolve(field string, node ast.Node) ast.Node {
	for range 32 {
		switch n := node.(type) {
		case *ast.TagNode:
			node = n.Value
		case *ast.AnchorNode:
			d.anchors[n.Name.GetToken().Value] = n.Value
			node = n.Value
		case *ast.AliasNode:
			target, ok := d.anchors[n.Value.GetToken().Value]
			if !ok {
				d.at(field, "alias *%s has no anchor before it", n.Value.GetToken().Value)
				return nil
			}
			node = target
		default:
			return node
		}
	}
	d.at(field, "aliases go in a circle")
	return nil
}

// entries returns a mapping's pairs, nil when the node is none.
func entries(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func isMapping(node ast.Node) bool {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// each calls do for every pair, after noting its line and refusing a name that comes twice.
func (d *decoder) each(parent string, node ast.Node, do func(name, field string, value ast.Node)) {
	if !isMapping(node) {
		d.at(parent, "names with values are wanted here (name: value), not %s", kindOf(node))
		return
	}
	seen := map[string]int{}
	for _, pair := range entries(node) {
		key := pair.Key.GetToken()
		if pair.Key.Type() == ast.MergeKeyType || pair.Key.Type() == ast.MappingKeyType {
			d.atLine(key.Position.Line, parent, "merge keys (<<) and complex keys (?) are not understood: write the names out")
			continue
		}
		name := key.Value
		field := join(parent, name)
		if first, twice := seen[name]; twice {
			d.atLine(key.Position.Line, field, fmt.Sprintf("stands here a second time, first on line %d", first))
			continue
		}
		seen[name] = key.Position.Line
		d.lines[field] = key.Position.Line
		do(name, field, pair.Value)
	}
}

// atLine adds a problem at a line of its own, when the field's first place is not the one that is wrong.
func (d *decoder) atLine(line int, field, message string) {
	d.problems.list = append(d.problems.list, Problem{Line: line, Field: field, Message: message})
}

func (d *decoder) mapping(parent string, node ast.Node, v reflect.Value) {
	names, index := yamlFields(v.Type())
	d.each(parent, node, func(name, field string, value ast.Node) {
		i, known := index[name]
		if !known {
			d.at(field, "unknown key%s", d.keyHint(name, names))
			return
		}
		d.value(field, value, v.Field(i))
	})
}

// keyHint names the near miss in the same mapping, or else where a key of that very name belongs.
func (d *decoder) keyHint(name string, names []string) string {
	if hint := nearmiss.Hint(name, names); hint != "" {
		return hint
	}
	for _, k := range Knobs {
		if last(k.Field) == name {
			return fmt.Sprintf("; it belongs to %s", strings.TrimSuffix(k.Field, "."+name))
		}
	}
	return "; known here: " + strings.Join(names, ", ")
}

// table decodes a mapping with free names: settings and columns.
func (d *decoder) table(parent string, node ast.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.each(parent, node, func(name, field string, value ast.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(field, value, item)
		v.SetMapIndex(reflect.ValueOf(name), item)
	})
}

func (d *decoder) list(field string, node ast.Node, v reflect.Value) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		d.at(field, "a list is wanted here (%s: [a, b]), not %s", last(field), kindOf(node))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", field, i)
		if t := item.GetToken(); t != nil {
			d.lines[at] = t.Position.Line
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if e.Type() == routeType {
			e.Set(reflect.ValueOf(DefaultRoute()))
		}
		if _, isNull := item.(*ast.NullNode); isNull {
			d.at(at, "is empty")
			continue
		}
		d.value(at, item, e)
		out = reflect.Append(out, e)
	}
	v.Set(out)
}

// scalar decodes a single value from its text. Quotes make no difference: "5s" and 5s are one, and so are a variable's digits and plain ones.
func (d *decoder) scalar(field string, node ast.Node, v reflect.Value) {
	raw, ok := textOf(node)
	if !ok {
		raw, ok = colonText(node)
	}
	if !ok {
		d.at(field, "a single value is wanted here, not %s", kindOf(node))
		return
	}
	text, fromFile, err := expand(raw, d.env)
	if err != nil {
		d.at(field, "%s", err)
		return
	}
	if v.Type() == secretType {
		s := Secret{value: text}
		if fromFile {
			s.reread = func() (string, error) { text, _, err := expand(raw, d.env); return text, err }
		}
		v.Set(reflect.ValueOf(s))
		return
	}
	if raw != text {
		d.expanded[field] = [2]string{raw, text}
	}
	if err := setScalar(v, text); err != nil {
		d.at(field, "%q %s", text, err)
	}
}

func setScalar(v reflect.Value, text string) error {
	switch {
	case v.Type() == durationType:
		parsed, err := ParseDuration(text)
		v.SetInt(int64(parsed))
		return err
	case v.Type() == sizeType:
		parsed, err := ParseSize(text)
		v.SetInt(int64(parsed))
		return err
	case v.Kind() == reflect.Int:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil {
			return fmt.Errorf("is no whole number")
		}
		v.SetInt(n)
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("is neither true nor false")
		}
		v.SetBool(text == "true")
	default:
		v.SetString(text)
	}
	return nil
}

// textOf returns a scalar's text as it was written, so that 007 stays what it is where a string is wanted.
func textOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// colonText mends what the parser makes of `{brokers: [localhost:9092]}`: inside braces it takes any colon for a mapping, where YAML's rule is that
// a plain one needs a space behind it. Without a space, brace or quote it was one scalar.
func colonText(node ast.Node) (string, bool) {
	pairs := entries(node)
	if len(pairs) != 1 || node.GetToken().Value != ":" {
		return "", false
	}
	key, colon := pairs[0].Key.GetToken(), pairs[0].Start
	value, ok := textOf(pairs[0].Value)
	if !ok || colon == nil || key.Indicator == token.QuotedScalarIndicator {
		return "", false
	}
	at := pairs[0].Value.GetToken()
	adjacent := at.Position.Line == colon.Position.Line && at.Position.Column == colon.Position.Column+1 && at.Indicator != token.QuotedScalarIndicator
	return key.Value + ":" + value, adjacent
}

func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "names with values"
	}
	return "a single value"
}

// yamlFields returns a struct's YAML names in their order, and where each one is.
func yamlFields(t reflect.Type) (names []string, index map[string]int) {
	index = map[string]int{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			names = append(names, name)
			index[name] = i
		}
	}
	return slices.Clip(names), index
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func last(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }
