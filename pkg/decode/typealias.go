package decode

import "fmt"

// geoTypes are names of ClickHouse for types that are made of others.
var geoTypes = map[string]string{
	"Point":           "Tuple(Float64, Float64)",
	"Ring":            "Array(Point)",
	"LineString":      "Array(Point)",
	"Polygon":         "Array(Ring)",
	"MultiLineString": "Array(LineString)",
	"MultiPolygon":    "Array(Polygon)",
}

// plain returns the type that values of t have, under t's own text: the T of a
// SimpleAggregateFunction(f, T), the array of tuples that a Nested is and that
// a shape is made of, the number in an Interval.
func (t *typeName) plain() (*typeName, error) {
	as := func(p *typeName) (*typeName, error) {
		p, err := p.plain()
		if err != nil {
			return nil, err
		}
		return &typeName{p.name, p.args, t.text}, nil
	}
	switch t.name {
	case "Point", "Ring", "LineString", "Polygon", "MultiLineString", "MultiPolygon":
		p, err := parseType(geoTypes[t.name])
		if err != nil {
			return nil, err
		}
		return as(p)
	case "SimpleAggregateFunction":
		p, err := t.elem(len(t.args) - 1)
		if err != nil || len(t.args) < 2 {
			return nil, fmt.Errorf("type %q: a function and a type are wanted", t.text)
		}
		return as(p)
	case "Nested":
		return as(&typeName{"Array", []typeArg{{typ: &typeName{"Tuple", t.args, "Tuple" + t.text[len("Nested"):]}}}, t.text})
	}
	return t, nil
}

// composite tells whether values of the type hold several, so that they are no
// keys.
func (t *typeName) composite() bool {
	switch t.name {
	case "Array", "Map", "Tuple", "JSON", "QBit":
		return true
	}
	if t.name != "Nullable" {
		return false
	}
	inner, err := t.elem(0)
	if err == nil {
		inner, err = inner.plain()
	}
	return err == nil && inner.composite()
}

// intervals are the types of spans of time: a number of the unit.
var intervals = map[string]bool{
	"IntervalNanosecond": true, "IntervalMicrosecond": true, "IntervalMillisecond": true, "IntervalSecond": true, "IntervalMinute": true, "IntervalHour": true,
	"IntervalDay": true, "IntervalWeek": true, "IntervalMonth": true, "IntervalQuarter": true, "IntervalYear": true,
}

// opaqueTypes have arguments with a grammar of their own.
func opaqueType(name string) bool {
	_, refused := refusedTypes[name]
	return refused || name == "JSON"
}

// refusedTypes are those that no JSON value fills exactly, with what to do
// instead.
var refusedTypes = map[string]string{
	"Object":            "the server does not have it any more; make the column JSON",
	"Dynamic":           "the record does not tell which type a value is to have" + parseInstead,
	"Variant":           "the record does not tell which of its types a value is to have; make it a column for each type, Nullable, or one String column",
	"Geometry":          "the record does not tell which shape a value is; make the column a Point, Ring, LineString, MultiLineString, Polygon or MultiPolygon",
	"AggregateFunction": "its states are made by the server alone; write the plain value into a table of its own and let a materialized view fill this one with the function's -State, or make it a SimpleAggregateFunction",
	"Nothing":           "there is no value of it",
}

const parseInstead = "; have the record carry the text as a string, write it to a String column, and let a MATERIALIZED column or a view parse it, or give each member a column (columns.NAME.from)"

// unsupported says what stands against a type.
func unsupported(t *typeName) error {
	if why, known := refusedTypes[t.name]; known {
		return fmt.Errorf("type %q is not supported: %s", t.text, why)
	}
	return fmt.Errorf("type %q is not supported", t.text)
}
