package decode_test

import (
	"strings"

	"github.com/ClickHouse/ch-go"
)

// jsonSettings are those with which the writer sends columns of JSON.
var jsonSettings = []ch.Setting{
	{Key: "input_format_try_infer_dates", Value: "0", Important: true}, {Key: "input_format_try_infer_datetimes", Value: "0", Important: true},
	{Key: "input_format_json_read_bools_as_numbers", Value: "0", Important: true}, {Key: "input_format_json_read_bools_as_strings", Value: "0", Important: true},
	{Key: "input_format_json_try_infer_numbers_from_strings", Value: "0", Important: true},
}

type oracleType struct {
	typ    string
	values []string
}

// oracleTypes are column types with JSON values that ClickHouse's own JSON
// format reads exactly.
var oracleTypes = []oracleType{
	{"Int8", []string{"-128", "127", `"5"`}}, {"Int16", []string{"-32768", "32767"}}, {"Int32", []string{"-2147483648", "2147483647"}}, {"Int64", []string{"-9223372036854775808", "9223372036854775807", `"9007199254740993"`}},
	{"UInt8", []string{"0", "255"}}, {"UInt16", []string{"65535"}}, {"UInt32", []string{"4294967295"}}, {"UInt64", []string{"18446744073709551615", `"18446744073709551615"`}},
	{"Float32", []string{"0.1", "-3.4028235e38", "16777217", "1.00000005960464477540"}}, {"Float64", []string{"0.1", "123456789.123456789", "5e-324", "1.7976931348623157e308", "9007199254740993", "1e23"}},
	{"Bool", []string{"true", "false"}},
	{"String", []string{`""`, `"a\u0000\n\\é😀\ud83d\ude00"`, `"` + strings.Repeat("x", 300) + `"`}},
	{"FixedString(4)", []string{`"abcd"`, `"a"`, `""`, `"éé"`}},
	{"Decimal(9, 2)", []string{"1.15", "-9999999.99", `"4.35"`, "1e3", "1e-2"}}, {"Decimal(18, 4)", []string{"99999999999999.9999", "-0.0001", "19.99"}}, {"Decimal(38, 10)", []string{"9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0.0000000001", "-1"}}, {"Decimal(38, 38)", []string{"0.12345678901234567890123456789012345678"}}, {"Decimal(5, 0)", []string{"-99999"}},
	{"Date", []string{`"1970-01-01"`, `"2149-06-06"`, `"2024-02-29"`}}, {"Date32", []string{`"1900-01-01"`, `"2299-12-31"`, `"1969-12-31"`}},
	{"DateTime('UTC')", []string{`"1970-01-01T00:00:00Z"`, `"2106-02-07T06:28:15Z"`, "1767225600", `"2026-01-01 00:00:00"`}}, {"DateTime('Asia/Tokyo')", []string{`"2026-01-15 10:00:00"`, `"2026-01-15T10:00:00+02:00"`}}, {"DateTime('America/New_York')", []string{`"2026-03-08 01:59:59"`, `"2026-03-08 03:00:00"`, `"2026-07-04 12:00:00"`}},
	{"DateTime64(3, 'UTC')", []string{`"1900-01-01T00:00:00Z"`, `"2299-12-31T23:59:59.999Z"`, `"1969-12-31T23:59:59.999Z"`, `"2026-01-01 00:00:00.123"`}}, {"DateTime64(9, 'Europe/Berlin')", []string{`"2026-01-15T10:00:00.123456789"`, `"2262-04-11T23:47:16.854775807Z"`, `"2026-03-29 03:00:00"`, `"1965-06-01 12:00:00"`}}, {"DateTime64(0, 'UTC')", []string{`"2026-01-01T00:00:00Z"`}}, {"DateTime64(6, 'America/New_York')", []string{`"2026-07-04 12:00:00.123456"`, `"2050-01-01 00:00:00"`}},
	{"UUID", []string{`"61F0C404-5CB3-11E7-907B-A6006AD3DBA0"`, `"61f0c4045cb311e7907ba6006ad3dba0"`}},
	{`Enum8('a' = 1, 'b,=\'(' = -128, 'c\nd' = 127)`, []string{`"a"`, `"b,='("`, `"c\nd"`, "127"}}, {`Enum16('x' = -32768, '' = 5)`, []string{`"x"`, `""`}},
	{"IPv4", []string{`"192.168.0.1"`, `"255.255.255.255"`}}, {"IPv6", []string{`"2001:DB8::1"`, `"::ffff:1.2.3.4"`, `"1.2.3.4"`}},
	{"LowCardinality(String)", []string{`"x"`, `""`, `"y"`}}, {"LowCardinality(Nullable(String))", []string{"null", `""`, `"x"`}}, {"LowCardinality(FixedString(3))", []string{`"EUR"`, `"E"`}}, {"LowCardinality(Nullable(FixedString(3)))", []string{"null", `"EUR"`, `""`}},
	{"Nullable(Int16)", []string{"null", "-7"}}, {"Nullable(Decimal(38, 2))", []string{"null", "1.25"}}, {"Nullable(String)", []string{"null", `""`, `"null"`}}, {"Nullable(Enum8('a' = 1))", []string{"null", `"a"`}}, {"Nullable(FixedString(4))", []string{"null", `"ab"`}}, {"Nullable(DateTime64(3, 'UTC'))", []string{"null", `"2026-01-01T00:00:00.5Z"`}}, {"Nullable(UUID)", []string{"null"}}, {"Nullable(Bool)", []string{"null", "true"}},
	{"Array(Nullable(Int32))", []string{"[1,null,2]", "[]"}}, {"Array(String)", []string{`["a","",""]`}}, {"Array(DateTime64(3, 'UTC'))", []string{`["2026-01-01T00:00:00.123Z"]`}}, {"Array(Array(UInt8))", []string{"[[1,2],[],[3]]", "[]"}}, {"Array(LowCardinality(String))", []string{`["a","b","a"]`, "[]"}}, {"Array(Array(LowCardinality(Nullable(String))))", []string{`[["a",null],[]]`}}, {"Array(Enum8('a' = 1))", []string{`["a"]`}}, {"Array(FixedString(2))", []string{`["a","bc"]`}},
	{"Map(String, String)", []string{`{"a":"1","b":""}`, "{}"}}, {"Map(String, UInt64)", []string{`{"a":18446744073709551615}`}}, {"Map(LowCardinality(String), Array(Nullable(String)))", []string{`{"a":["x",null],"b":[]}`}},
	{"Int128", []string{"-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", `"-1"`}}, {"UInt128", []string{"340282366920938463463374607431768211455", "0"}},
	{"Int256", []string{"-57896044618658097711785492504343953926634992332820282019728792003956564819968", "57896044618658097711785492504343953926634992332820282019728792003956564819967", `"18446744073709551616"`}}, {"UInt256", []string{"115792089237316195423570985008687907853269984665640564039457584007913129639935"}},
	{"Decimal(76, 38)", []string{"99999999999999999999999999999999999999.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001", "1e37"}}, {"Decimal(39, 0)", []string{"999999999999999999999999999999999999999", "-1"}}, {"Decimal(76, 76)", []string{"-0.9999999999999999999999999999999999999999999999999999999999999999999999999999"}},
	{"BFloat16", []string{"1.5", "-0.25", "3.3895314e38", "9.1835e-41", "0"}},
	{"Time", []string{`"00:00:00"`, `"999:59:59"`, `"-999:59:59"`, `"1:02:03"`, `"-0:00:01"`}}, {"Time64(0)", []string{`"23:59:59"`}}, {"Time64(3)", []string{`"-999:59:59.999"`, `"999:59:59.999"`, `"0:00:00.1"`, `"-0:00:00.1"`}}, {"Time64(9)", []string{`"999:59:59.999999999"`, `"-00:00:00.000000001"`}},
	{"IntervalDay", []string{"-5", `"7"`, "9223372036854775807"}}, {"Nullable(IntervalNanosecond)", []string{"null", "1"}},
	{"LowCardinality(UInt64)", []string{"18446744073709551615", "0", "7"}}, {"LowCardinality(Int256)", []string{"-1", "5"}}, {"LowCardinality(Float64)", []string{"0.1", "-0.0", "0"}}, {"LowCardinality(Date)", []string{`"2024-02-29"`}}, {"LowCardinality(Date32)", []string{`"1900-01-01"`, `"2299-12-31"`}}, {"LowCardinality(DateTime('Asia/Tokyo'))", []string{`"2026-01-15 10:00:00"`}}, {"LowCardinality(UUID)", []string{`"61F0C404-5CB3-11E7-907B-A6006AD3DBA0"`}}, {"LowCardinality(IPv4)", []string{`"1.2.3.4"`}}, {"LowCardinality(IPv6)", []string{`"::1"`}}, {"LowCardinality(Bool)", []string{"true", "false"}}, {"LowCardinality(Time)", []string{`"1:02:03"`}}, {"LowCardinality(BFloat16)", []string{"1.5"}}, {"LowCardinality(IntervalDay)", []string{"3"}},
	{"LowCardinality(Nullable(Int8))", []string{"null", "0", "-128"}}, {"LowCardinality(Nullable(Date32))", []string{"null", `"2026-01-01"`}}, {"LowCardinality(Nullable(UUID))", []string{"null"}}, {"Array(LowCardinality(Nullable(UInt16)))", []string{"[1,null,1,0]", "[]"}},
	{"Tuple(a String, b UInt64)", []string{`{"a":"x","b":18446744073709551615}`, `{"b":0,"a":""}`}}, {"Tuple(String, Nullable(UInt8))", []string{`["x",null]`, `["",1]`}}, {"Tuple(a Tuple(b LowCardinality(String), c Array(Tuple(UInt8, LowCardinality(Nullable(UInt8))))), d Nullable(Decimal(76, 2)))", []string{`{"d":1.25,"a":{"c":[[1,null],[2,3]],"b":"x"}}`, `{"a":{"b":"","c":[]}}`}},
	{"Tuple(`a.b` UInt8, `x\\`y` String, `q'` UInt8, `c d` UInt8)", []string{"{\"a.b\":1,\"x`y\":\"z\",\"q'\":2,\"c d\":3}"}}, {"Nullable(Tuple(a UInt8, b LowCardinality(String)))", []string{"null", `{"a":1,"b":"x"}`}}, {"Tuple()", []string{"[]"}},
	{"Map(UInt8, String)", []string{`{"1":"a","255":"b"}`}}, {"Map(Int256, UInt8)", []string{`{"-1":1}`}}, {"Map(Date, UInt8)", []string{`{"2026-01-01":1}`}}, {"Map(UUID, UInt8)", []string{`{"61f0c404-5cb3-11e7-907b-a6006ad3dba0":1}`}}, {"Map(Enum8('a' = 1, 'b' = 2), UInt8)", []string{`{"b":1,"a":2}`}}, {"Map(FixedString(3), UInt8)", []string{`{"EUR":1}`}}, {"Map(LowCardinality(UInt16), LowCardinality(String))", []string{`{"7":"x","8":"x"}`}}, {"Map(DateTime('UTC'), UInt8)", []string{`{"2026-01-01T00:00:00Z":1}`}}, {"Map(IPv4, UInt8)", []string{`{"1.2.3.4":1}`}}, {"Map(String, Tuple(UInt8, Map(UInt8, UInt8)))", []string{`{"a":[1,{"2":3}]}`}},
	{"Point", []string{"[1.5,-2]"}}, {"Ring", []string{"[[0,0],[1,0.5]]", "[]"}}, {"LineString", []string{"[[0,0],[1,0.5]]"}}, {"MultiLineString", []string{"[[[0,0],[1,0.5]],[]]"}}, {"Polygon", []string{"[[[0,0],[1,0.5],[0,1]]]"}}, {"MultiPolygon", []string{"[[[[0,0],[1,0.5],[0,1]]]]"}},
	{"SimpleAggregateFunction(sum, UInt64)", []string{"5"}}, {"SimpleAggregateFunction(anyLast, LowCardinality(Nullable(String)))", []string{"null", `"x"`}}, {"SimpleAggregateFunction(groupArrayArray, Array(UInt8))", []string{"[1,2]"}},
	{"Nested(a UInt8, b Nested(c LowCardinality(String)))", []string{`[{"a":1,"b":[{"c":"x"},{"c":""}]},{"a":2,"b":[]}]`, "[]"}}, {"Array(Nested(a UInt8))", []string{`[[{"a":1}],[]]`}},
	{"JSON", []string{`{"a":1.50,"b":[1,"x",null,{"c":true}],"d":{"e":"2026-01-01 00:00:00.000"},"f":18446744073709551615}`, "{}"}}, {"Nullable(JSON)", []string{"null", `{"a":1}`}}, {"Array(JSON)", []string{`[{"a":1},{"b":"x"}]`, "[]"}}, {"Tuple(a JSON(max_dynamic_paths=4), b UInt8)", []string{`{"a":{"x":1,"y":2},"b":1}`}},
}
