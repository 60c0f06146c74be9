package decode

// fieldValues are spellings that other sinks have changed, cut off or taken for
// something else.
var fieldValues = []struct {
	typ   string
	cases [][2]string
}{
	{"Int64", [][2]string{{"1E-2", "!inexact"}, {"100E-2", "1"}, {"9.223372036854775807e18", "9223372036854775807"}, {"9223372036854775807000000e-6", "9223372036854775807"}, {"1e-999999999", "!inexact"}}},
	{"Int8", [][2]string{{"-1.28e2", "-128"}, {"-1.29e2", "!out_of_range"}}},
	{"UInt8", [][2]string{{"2.55e2", "255"}, {"2.56E+2", "!out_of_range"}, {"-0.0e5", "0"}}},
	{"UInt64", [][2]string{
		{"0.0000000000000000000000000000001e31", "1"}, {`"0001"`, "!bad_value"}, {`"1_000"`, "!bad_value"}, {`"1,000"`, "!bad_value"}, {`"٣"`, "!bad_value"}, {`"1\u0000"`, "!bad_value"}, {`"7\n"`, "!bad_value"},
		{"340282366920938463463374607431768211457", "!out_of_range"}, {"340282366920938463463374607431768211456", "!out_of_range"}, {"36893488147419103232", "!out_of_range"}, // 2^128 + 1, 2^128, 2^65: they wrap to 1 and 0
		{"0e99999999999", "!out_of_range"}, {`"0e99999999999"`, "!out_of_range"},
	}},
	{"Decimal(38, 0)", [][2]string{
		{"99999999999999999999999999999999999999", "99999999999999999999999999999999999999"}, {"-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"}, {"100000000000000000000000000000000000000", "!out_of_range"},
		{"340282366920938463463374607431768211457", "!out_of_range"}, {"1e37", "10000000000000000000000000000000000000"}, {"1e38", "!out_of_range"},
	}},
	{"Decimal(38, 18)", [][2]string{
		{"12345678901234567890.123456789012345678", "12345678901234567890.123456789012345678"}, {"12345678901234567890.123456789012345678000000000", "12345678901234567890.123456789012345678"},
		{"12345678901234567890.1234567890123456781", "!inexact"}, {"0.000000000000000000000000000000000000001e21", "0.000000000000000001"},
	}},
	{"Decimal(18, 4)", [][2]string{
		{"0.00005", "!inexact"}, {"0.00004", "!inexact"}, {"9999999999999999999e-5", "!inexact"}, {"999999999999999999e-4", "99999999999999.9999"}, {"-1E-4", "-0.0001"}, {`"-1.5e+1"`, "-15.0000"}, {`"$1"`, "!bad_value"}, {`"1.5 "`, "!bad_value"},
		{"0.3333", "0.3333"}, {"1.0000000000000000000000000000000000000001", "!inexact"}, {"[1]", "!wrong_type"}, {`{"v":1}`, "!wrong_type"},
	}},
	{"Decimal(19, 0)", [][2]string{{"9999999999999999999", "9999999999999999999"}, {"10000000000000000000", "!out_of_range"}}},
	{"Float64", [][2]string{{"1.7976931348623159e308", "!out_of_range"}, {"3e-324", "5e-324"}, {"2e-324", "!out_of_range"}, {`"-inf"`, "!bad_value"}, {`"1e5"`, "100000"}}},
	{"String", [][2]string{
		{`"\ud800\udc00"`, `"𐀀"`}, {`"\uDBFF\uDFFF"`, `"\U0010ffff"`}, {`"\ufeff"`, `"\ufeff"`}, {`"\ufffd"`, `"�"`}, {`"\ud800x\udc00"`, "!invalid_utf8"}, {`"aaaaaaaaaaaaaaaa\ud800"`, "!invalid_utf8"},
		{"\"\xf4\x90\x80\x80\"", "!invalid_utf8"}, {`"e\u0301"`, "\"e\u0301\""}, {`"\U0041"`, "!syntax"}, {"\"a\x00b\"", "!syntax"},
	}},
	{"Enum16('1' = 2, '2' = 1)", [][2]string{{`"1"`, `"1"`}, {"1", `"2"`}, {"65537", "!out_of_range"}}},
	{"Date", [][2]string{{`"1900-02-29"`, "!bad_value"}, {`"20260101"`, "!bad_value"}, {`"2026/01/01"`, "!bad_value"}, {`"2026-01-01Z"`, "!bad_value"}}},
	{"DateTime('UTC')", [][2]string{
		// 0 has no magnitude, however it is spelt.
		{"0e10", "!ambiguous_time"}, {"0e12", "!ambiguous_time"}, {"0e15", "!ambiguous_time"}, {"0.000e12", "!ambiguous_time"}, {"0e-3", "!ambiguous_time"}, {`"0e10"`, "!ambiguous_time"}, {`"0e9"`, "!ambiguous_time"}, {"0.00000000000000000000000e12", "!ambiguous_time"},
		{"1.7672256E9", "2026-01-01T00:00:00Z"}, {`"1.7672256e9"`, "2026-01-01T00:00:00Z"}, {`"1e12"`, "2001-09-09T01:46:40Z"}, {`"1e9"`, "2001-09-09T01:46:40Z"}, {`"2026"`, "!ambiguous_time"}, {`"-1"`, "!ambiguous_time"}, {`"e12"`, "!bad_value"},
		{`"2106-02-07T07:28:15+01:00"`, "2106-02-07T06:28:15Z"}, {`"2106-02-07T06:28:15-00:01"`, "!out_of_range"}, {`"1970-01-01T00:00:00+00:01"`, "!out_of_range"}, {`"2026-02-30T00:00:00Z"`, "!bad_value"},
	}},
	{"DateTime64(3, 'UTC')", [][2]string{{"0e12", "!ambiguous_time"}, {"0.0", "!ambiguous_time"}, {"-1767225600123", "!ambiguous_time"}, {"1767225600123000000.5", "!inexact"}, {"99999999.999", "!ambiguous_time"}, {`"1901-12-13T20:45:51.999Z"`, "1901-12-13T20:45:51.999Z"}}},
	{"DateTime('America/New_York')", [][2]string{{`"2026-03-08 02:30:00"`, "!ambiguous_time"}, {`"2026-11-01 01:30:00"`, "!ambiguous_time"}, {`"2026-11-01 01:30:00-04:00"`, "2026-11-01T05:30:00Z"}, {`"2026-11-01 01:30:00-05"`, "2026-11-01T06:30:00Z"}, {`"2026-11-01 02:00:00"`, "2026-11-01T07:00:00Z"}}},
	{"DateTime('Australia/Lord_Howe')", [][2]string{{`"2026-10-04 02:15:00"`, "!ambiguous_time"}, {`"2026-10-04 02:30:00"`, "2026-10-03T15:30:00Z"}, {`"2026-04-05 01:45:00"`, "!ambiguous_time"}}}, // half an hour of summer time
	{"DateTime('Pacific/Apia')", [][2]string{{`"2011-12-30 12:00:00"`, "!ambiguous_time"}, {`"2011-12-31 00:00:00"`, "2011-12-30T10:00:00Z"}}},                                                      // a day that was left out
	{"UUID", [][2]string{{`"61f0c404-5cb311e7-907b-a6006ad3dba0"`, "!bad_value"}, {`"61f0c404\u002d5cb3-11e7-907b-a6006ad3dba0"`, "61f0c404-5cb3-11e7-907b-a6006ad3dba0"}}},
	{"IPv4", [][2]string{{`"::ffff:1.2.3.4"`, "!bad_value"}, {`"127.1"`, "!bad_value"}, {`"0x7f.1"`, "!bad_value"}}},
	{"Array(Nullable(Decimal(9, 2)))", [][2]string{{"[null,1.5,null,-0.01]", "[NULL,1.50,NULL,-0.01]"}, {"[1.555]", "!inexact"}, {"[[null]]", "!wrong_type"}}},
	{"Array(UInt8)", [][2]string{{"[1,null]", "!null"}, {"[1,,2]", "!syntax"}, {`"[1]"`, "!wrong_type"}, {"[256]", "!out_of_range"}}},
	{"Map(String, Map(String, String))", [][2]string{{`{"a":{"b":"c"},"d":{}}`, `{"a":{"b":"c"},"d":{}}`}, {`{"a":{"b":"c","\u0062":"d"}}`, "!duplicate_name"}}},
	{"Map(LowCardinality(String), LowCardinality(Nullable(String)))", [][2]string{{`{"a":null,"b":""}`, `{"a":NULL,"b":""}`}}},
	{"Nullable(DateTime64(3, 'UTC'))", [][2]string{{`""`, "!bad_value"}, {"null", "NULL"}, {"0e12", "!ambiguous_time"}}},
	{"Nullable(Decimal(9, 2))", [][2]string{{`""`, "!bad_value"}, {`"null"`, "!bad_value"}}},
}
