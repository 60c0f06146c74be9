package decode_test

const (
	insideRule   = "What the type inside takes."
	nullableRule = "null, or what the type inside takes. An empty string is not null."
	tupleRule    = "With names, from an object that has each of them, to the letter, and no others; one whose type is Nullable may be absent (and with missing_fields: zero any). Without names, from an array of exactly that length."
	mapRule      = "From an object. A name is to the key's type what a string would be; true and false are a Bool. Two names that are one key are refused."
)

// wrappedConversions are of one value in another type.
var wrappedConversions = []conversion{
	{"Nullable(Int16)", nullableRule, [][2]string{{"null", "null"}, {"-32768", "-32768"}, {"32768", "!out_of_range"}, {`"7"`, "7"}, {`""`, "!bad_value"}}},
	{"Nullable(String)", nullableRule, [][2]string{{"null", "null"}, {`""`, `""`}, {`"null"`, `"null"`}}},
	{"Nullable(Decimal(76, 2))", nullableRule, [][2]string{{"null", "null"}, {"1.25", "1.25"}, {"1.255", "!inexact"}, {`""`, "!bad_value"}}},
	{"Nullable(Time64(3))", nullableRule, [][2]string{{"null", "null"}, {`"-1:00:00"`, `"-01:00:00.000"`}}},
	{"LowCardinality(String)", insideRule, [][2]string{{`"x"`, `"x"`}, {`""`, `""`}}},
	{"LowCardinality(Nullable(String))", nullableRule, [][2]string{{"null", "null"}, {`""`, `""`}, {`"x"`, `"x"`}}},
	{"LowCardinality(FixedString(3))", insideRule, [][2]string{{`"E"`, `"E\u0000\u0000"`}, {`"EURO"`, "!out_of_range"}}},
	{"LowCardinality(UInt64)", insideRule, [][2]string{{"18446744073709551615", "18446744073709551615"}, {"18446744073709551616", "!out_of_range"}, {"0", "0"}, {`"7"`, "7"}, {`"x"`, "!bad_value"}}},
	{"LowCardinality(Nullable(Int256))", nullableRule, [][2]string{{"null", "null"}, {"-1", "-1"}, {"1e77", "!out_of_range"}, {`"x"`, "!bad_value"}}},
	{"LowCardinality(Float64)", insideRule + " -0 is 0, which the server's dictionary always has.", [][2]string{{"-0.0", "0"}, {"0.1", "0.1"}, {"0", "0"}, {"1e400", "!out_of_range"}, {`"NaN"`, "!bad_value"}}},
	{"LowCardinality(Nullable(Float32))", nullableRule + " -0 is 0.", [][2]string{{"-0.0", "0"}, {"null", "null"}, {"0", "0"}, {"1.5", "1.5"}, {`"x"`, "!bad_value"}}},
	{"LowCardinality(Date)", insideRule, [][2]string{{`"2149-06-06"`, `"2149-06-06"`}, {`"2149-06-07"`, "!out_of_range"}}},
	{"LowCardinality(Date32)", insideRule, [][2]string{{`"1900-01-01"`, `"1900-01-01"`}, {`"1899-12-31"`, "!out_of_range"}}},
	{"LowCardinality(DateTime('UTC'))", insideRule, [][2]string{{`"2026-01-01T00:00:00Z"`, `"2026-01-01 00:00:00"`}, {"1767225600", `"2026-01-01 00:00:00"`}, {"0", "!ambiguous_time"}}},
	{"LowCardinality(Time)", insideRule, [][2]string{{`"1:02:03"`, `"01:02:03"`}, {`"x"`, "!bad_value"}}},
	{"LowCardinality(UUID)", insideRule, [][2]string{{`"61f0c4045cb311e7907ba6006ad3dba0"`, `"61f0c404-5cb3-11e7-907b-a6006ad3dba0"`}, {`""`, "!bad_value"}}},
	{"LowCardinality(Nullable(IPv4))", nullableRule, [][2]string{{"null", "null"}, {`"1.2.3.4"`, `"1.2.3.4"`}, {`"1.2.3"`, "!bad_value"}}},
	{"LowCardinality(IPv6)", insideRule, [][2]string{{`"::1"`, `"::1"`}}},
	{"LowCardinality(Bool)", insideRule, [][2]string{{"true", "true"}, {"false", "false"}, {"1", "!wrong_type"}}},
	{"LowCardinality(BFloat16)", insideRule, [][2]string{{"1.01171875", "1.015625"}, {"-0.0", "0"}, {`"x"`, "!bad_value"}}},
	{"LowCardinality(IntervalDay)", insideRule, [][2]string{{"5", "5"}, {`"x"`, "!bad_value"}}},
	{"SimpleAggregateFunction(sum, UInt64)", insideRule, [][2]string{{"5", "5"}, {"-1", "!out_of_range"}, {`"5"`, "5"}}},
	{"SimpleAggregateFunction(anyLast, LowCardinality(Nullable(String)))", insideRule, [][2]string{{"null", "null"}, {`"x"`, `"x"`}}},
	{"SimpleAggregateFunction(groupArrayArray, Array(UInt8))", insideRule, [][2]string{{"[1,2]", "[1,2]"}, {"[256]", "!out_of_range"}}},
}

// nestedConversions are of several values.
var nestedConversions = []conversion{
	{"Array(Nullable(Int32))", "From an array of what the type inside takes.", [][2]string{{"[1,null,2]", "[1,null,2]"}, {"[]", "[]"}, {`["1"]`, "[1]"}, {"[2147483648]", "!out_of_range"}, {"[[1]]", "!wrong_type"}, {`"[1]"`, "!wrong_type"}}},
	{"Array(Array(LowCardinality(Nullable(String))))", "Arrays in arrays.", [][2]string{{`[["a",null],[]]`, `[["a",null],[]]`}, {`["a"]`, "!wrong_type"}}},
	{"Array(Time64(6))", "From an array of what the type inside takes.", [][2]string{{`["1:00:00.000001"]`, `["01:00:00.000001"]`}, {"[null]", "!null"}}},
	{"Tuple(a UInt8, b Nullable(String))", tupleRule, [][2]string{
		{`{"a":1,"b":"x"}`, `{"a":1,"b":"x"}`}, {`{"b":null,"a":2}`, `{"a":2,"b":null}`}, {`{"a":3}`, `{"a":3,"b":null}`}, {`{"b":"x"}`, "!missing_field"}, {`{}`, "!missing_field"}, {`{"a":1,"c":2}`, "!unknown_field"}, {`{"A":1}`, "!unknown_field"}, {`{"a":256}`, "!out_of_range"}, {`{"a":null}`, "!null"}, {`{"a":1,"a":1}`, "!duplicate_name"},
		{`[1,"x"]`, "!wrong_type"},
	}},
	{"Tuple(UInt8, String)", tupleRule, [][2]string{{`[1,"x"]`, `[1,"x"]`}, {"[1]", "!bad_value"}, {`[1,"x",2]`, "!bad_value"}, {"[]", "!bad_value"}, {`["x",1]`, "!bad_value"}, {`[1,null]`, "!null"}, {`{"1":1,"2":"x"}`, "!wrong_type"}}},
	{"Tuple(`a.b` UInt8, `x\\`y` String)", tupleRule, [][2]string{{"{\"x`y\":\"z\",\"a.b\":1}", "{\"a.b\":1,\"x`y\":\"z\"}"}, {`{"a":{"b":1}}`, "!unknown_field"}}},
	{"Tuple(a Tuple(b Array(Tuple(c LowCardinality(String)))), d Map(String, UInt8))", tupleRule, [][2]string{{`{"a":{"b":[{"c":"x"},{"c":""}]},"d":{"e":1}}`, `{"a":{"b":[{"c":"x"},{"c":""}]},"d":{"e":1}}`}, {`{"a":{"b":[{}]},"d":{}}`, "!missing_field"}, {`{"a":{"b":[],"x":1},"d":{}}`, "!unknown_field"}}},
	{"Tuple()", "From an empty array.", [][2]string{{"[]", "[]"}, {"[1]", "!bad_value"}}},
	{"Nullable(Tuple(a UInt8, b LowCardinality(String)))", nullableRule, [][2]string{{"null", "null"}, {`{"a":1,"b":"x"}`, `{"a":1,"b":"x"}`}, {`{"a":1}`, "!missing_field"}}},
	{"Nested(a UInt8, b Nested(c String))", "Not flattened: from an array of objects, each as a Tuple.", [][2]string{{`[{"a":1,"b":[{"c":"x"}]},{"b":[],"a":2}]`, `[{"a":1,"b":[{"c":"x"}]},{"a":2,"b":[]}]`}, {"[]", "[]"}, {`[{"a":1}]`, "!missing_field"}, {`{"a":[1],"b":[]}`, "!wrong_type"}}},
	{"Map(String, UInt64)", mapRule, [][2]string{{`{"a":18446744073709551615,"":0}`, `{"a":18446744073709551615,"":0}`}, {"{}", "{}"}, {`{"a":-1}`, "!out_of_range"}, {`{"a":1,"\u0061":2}`, "!duplicate_name"}, {`{"a":null}`, "!null"}, {`[["a",1]]`, "!wrong_type"}}},
	{"Map(LowCardinality(String), Array(Nullable(String)))", mapRule, [][2]string{{`{"a":["x",null],"b":[]}`, `{"a":["x",null],"b":[]}`}}},
	{"Map(UInt8, String)", mapRule, [][2]string{{`{"0":"a","255":"b"}`, `{"0":"a","255":"b"}`}, {`{"256":"a"}`, "!out_of_range"}, {`{"1.0":"a"}`, `{"1":"a"}`}, {`{"1":"a","1.0":"b"}`, "!duplicate_name"}, {`{"01":"a"}`, "!bad_value"}, {`{"":"a"}`, "!bad_value"}, {`{"x":"a"}`, "!bad_value"}}},
	{"Map(Int256, UInt8)", mapRule, [][2]string{{`{"-1":1}`, `{"-1":1}`}, {`{"1":1,"10e-1":2}`, "!duplicate_name"}}},
	{"Map(Float64, UInt8)", mapRule, [][2]string{{`{"0.5":1}`, `{"0.5":1}`}, {`{"0":1,"-0.0":2}`, "!duplicate_name"}, {`{"nan":1}`, "!bad_value"}}},
	{"Map(Decimal(9, 2), UInt8)", mapRule, [][2]string{{`{"1.50":1}`, `{"1.5":1}`}, {`{"1.5":1,"1.50":2}`, "!duplicate_name"}, {`{"1.555":1}`, "!inexact"}}},
	{"Map(Date, UInt8)", mapRule, [][2]string{{`{"2026-01-01":1}`, `{"2026-01-01":1}`}, {`{"2026-02-30":1}`, "!bad_value"}}},
	{"Map(DateTime('UTC'), UInt8)", mapRule, [][2]string{{`{"2026-01-01T00:00:00Z":1}`, `{"2026-01-01 00:00:00":1}`}, {`{"2026-01-01T00:00:00Z":1,"1767225600":2}`, "!duplicate_name"}}},
	{"Map(Time, UInt8)", mapRule, [][2]string{{`{"1:00:00":1}`, `{"01:00:00":1}`}, {`{"1:00:00":1,"01:00:00":2}`, "!duplicate_name"}}},
	{"Map(UUID, UInt8)", mapRule, [][2]string{{`{"61F0C404-5CB3-11E7-907B-A6006AD3DBA0":1}`, `{"61f0c404-5cb3-11e7-907b-a6006ad3dba0":1}`}, {`{"61f0c404-5cb3-11e7-907b-a6006ad3dba0":1,"61F0C404-5cb3-11e7-907b-a6006ad3dba0":2}`, "!duplicate_name"}}},
	{"Map(IPv6, UInt8)", mapRule, [][2]string{{`{"::1":1}`, `{"::1":1}`}, {`{"::1":1,"0::1":2}`, "!duplicate_name"}}},
	{"Map(Enum8('a' = 1, 'b' = 2), UInt8)", mapRule, [][2]string{{`{"b":1,"a":2}`, `{"b":1,"a":2}`}, {`{"c":1}`, "!bad_value"}, {`{"1":1}`, "!bad_value"}}},
	{"Map(FixedString(3), UInt8)", mapRule, [][2]string{{`{"EUR":1}`, `{"EUR":1}`}, {`{"E":1,"E\u0000":2}`, "!duplicate_name"}, {`{"EURO":1}`, "!out_of_range"}}},
	{"Map(Bool, UInt8)", mapRule, [][2]string{{`{"true":1,"false":0}`, `{"true":1,"false":0}`}, {`{"1":1}`, "!wrong_type"}}},
	{"Map(LowCardinality(UInt16), Tuple(UInt8, Map(UInt8, UInt8)))", mapRule, [][2]string{{`{"7":[1,{"2":3}]}`, `{"7":[1,{"2":3}]}`}, {`{"7":[1,{"2":3,"2.0":4}]}`, "!duplicate_name"}}},
	{"Point", "As Tuple(Float64, Float64): an array of two numbers.", [][2]string{{"[1.5,-2]", "[1.5,-2]"}, {"[1]", "!bad_value"}, {"[1,2,3]", "!bad_value"}, {`{"x":1,"y":2}`, "!wrong_type"}}},
	{"Ring", "As Array(Point).", [][2]string{{"[[0,0],[1,0.5]]", "[[0,0],[1,0.5]]"}, {"[]", "[]"}, {"[[0]]", "!bad_value"}}},
	{"LineString", "As Array(Point).", [][2]string{{"[[0,0],[1,0.5]]", "[[0,0],[1,0.5]]"}, {"[0,0]", "!wrong_type"}}},
	{"Polygon", "As Array(Ring).", [][2]string{{"[[[0,0],[1,0.5],[0,1]],[]]", "[[[0,0],[1,0.5],[0,1]],[]]"}, {"[[0,0]]", "!wrong_type"}}},
	{"MultiLineString", "As Array(LineString).", [][2]string{{"[[[0,0],[1,0.5]],[]]", "[[[0,0],[1,0.5]],[]]"}}},
	{"MultiPolygon", "As Array(Polygon).", [][2]string{{"[[[[0,0],[1,0.5],[0,1]]]]", "[[[[0,0],[1,0.5],[0,1]]]]"}}},
	{"QBit(Float32, 3)", "From an array of so many numbers, as floats.", [][2]string{{"[0.1,-1.5,3.4028235e38]", "[0.1,-1.5,3.4028235e38]"}, {"[1,2]", "!bad_value"}, {"[1,2,3,4]", "!bad_value"}, {"[1,2,3.5e38]", "!out_of_range"}, {"[]", "!bad_value"}, {"[1,2,null]", "!null"}}},
	{"QBit(BFloat16, 9)", "As any QBit.", [][2]string{{"[1,2,3,4,5,6,7,8,-9]", "[1,2,3,4,5,6,7,8,-9]"}, {"[]", "!bad_value"}}},
	{"QBit(Float64, 17)", "As any QBit.", [][2]string{{"[0.1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,5e-324]", "[0.1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,5e-324]"}, {"[]", "!bad_value"}}},
	{"JSON", "From an object, whose text is sent. To ClickHouse the value is its leaves by path: a null member and an empty object have none. What it would read as another value is refused: a number that a double rounds, an integer beyond 64 bits, a name with a dot.", [][2]string{
		{`{"b":[1,"x",null,{"c":true}],"a":1.50}`, `{"a":1.5,"b":[1,"x",null,{"c":true}]}`}, {`{"at":"2026-01-01 00:00:00.5","n":"12"}`, `{"at":"2026-01-01 00:00:00.5","n":"12"}`}, {`{"a":null,"b":{}}`, "{}"}, {"{}", "{}"}, {`{"a":18446744073709551615,"b":-9223372036854775808}`, `{"a":18446744073709551615,"b":-9223372036854775808}`}, {`{"a":[true,1],"b":1e22}`, `{"a":[true,1],"b":1e22}`},
		{`{"a":18446744073709551616}`, "!out_of_range"}, {`{"a":-9223372036854775809}`, "!out_of_range"}, {`{"a":0.12345678901234567890}`, "!inexact"}, {`{"a":1e400}`, "!out_of_range"}, {`{"a":1e-400}`, "!out_of_range"}, {`{"a.b":1}`, "!bad_value"}, {`{"a":[{"b":{"c.d":1}}]}`, "!bad_value"}, {`"{}"`, "!wrong_type"},
	}},
	{"JSON(max_dynamic_paths=8)", "As JSON.", [][2]string{{`{"a":1}`, `{"a":1}`}}},
	{"Nullable(JSON)", nullableRule, [][2]string{{"null", "null"}, {`{"a":1}`, `{"a":1}`}}},
	{"Array(JSON)", "From an array of objects.", [][2]string{{`[{"a":1},{}]`, `[{"a":1},{}]`}, {"[1]", "!wrong_type"}}},
}

// refusals are the types that NewJSON refuses, with what it says to do.
var refusals = []struct{ typ, cure string }{
	{"JSON(a UInt8, SKIP b)", "the server converts or drops what stands at the paths that it names; make the column JSON, and give those members columns of their own (columns.NAME.from)"},
	{"Dynamic", "the record does not tell which type a value is to have; have the record carry the text as a string, write it to a String column, and let a MATERIALIZED column or a view parse it, or give each member a column (columns.NAME.from)"},
	{"Variant(String, UInt64)", "the record does not tell which of its types a value is to have; make it a column for each type, Nullable, or one String column"},
	{"Geometry", "the record does not tell which shape a value is; make the column a Point, Ring, LineString, MultiLineString, Polygon or MultiPolygon"},
	{"AggregateFunction(sum, UInt64)", "its states are made by the server alone; write the plain value into a table of its own and let a materialized view fill this one with the function's -State, or make it a SimpleAggregateFunction"},
	{"Object('json')", "the server does not have it any more; make the column JSON"},
	{"Nothing", "there is no value of it"},
	{"Map(Point, UInt8)", "the name of a member cannot spell its key; make the column an Array(Tuple(key Point, value ...))"},
	{"Map(Array(UInt8), UInt8)", "the name of a member cannot spell its key; make the column an Array(Tuple(key Array(UInt8), value ...))"},
}
