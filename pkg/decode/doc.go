// Package decode turns the bytes of records into typed ClickHouse columns:
// exactly, or not at all.
//
// A record is one JSON object. Its fields go into the columns of their names,
// or of the paths that Options.From gives. Append either adds a row whose every
// value is the record's, or returns a Reject and leaves the block as it was;
// nothing is rounded, wrapped, cut off or guessed. It also gives the row's key
// (from the decoded columns, see key.go) and its fingerprint (from the
// record's fields whatever the columns are, see canonical.go). Both are
// persistent formats.
//
// # What is JSON
//
// UTF-8 without a byte order mark; one object and white space, nothing behind
// it; no object has a name twice, escapes resolved; names are matched to the
// letter; no half surrogate pairs; at most MaxDepth levels. An empty value is a
// tombstone. Unknown fields are rejected or counted (Options.UnknownFields),
// also inside of objects that paths lead into and of those that become a Tuple;
// inside of a value that a Map or JSON takes whole there are none.
//
// # What a column takes
//
//	Int, UInt 8-256  a number that is an integer, however spelt: 7, 7.0, 70e-1
//	Decimal          a number whose digits fit scale and precision, of up to 76
//	                 digits: 1.50, 15e-1
//	Float, BFloat16  a number, rounded to the nearest, half way to even; one that
//	                 would become infinite, or zero without being zero, is out of
//	                 range. (ClickHouse cuts the text of a BFloat16 off instead.)
//	Interval         a number of the unit, an integer of 64 bits
//	all of these     also a string that spells such a number in JSON's grammar:
//	                 "7" but not " 7", "+7", "07", "" or "NaN"
//	Bool             true, false
//	String           a string
//	FixedString(N)   a string of at most N bytes, padded with zero bytes
//	Enum             a label as a string, a declared value as a number
//	UUID             8-4-4-4-12 or 32 hex digits in either case
//	IPv4, IPv6       their text; IPv4 text into IPv6 is ::ffff:a.b.c.d
//	Date, Date32     YYYY-MM-DD; no instants, whose day depends on a zone
//	DateTime,        YYYY-MM-DD hh:mm:ss or with T, a fraction, and Z, +hh:mm,
//	DateTime64       +hhmm or +hh. Without a zone it is in the column's, else
//	                 in the server's (Options.TimeZone), and must be a time that
//	                 this zone has once. Second 60 and hour 24 are no times.
//	                 Or a number, also quoted: an epoch in s, ms, us or ns by
//	                 its magnitude: 1e8 <= s < 1e11 <= ms < 1e14 <= us < 1e17
//	                 <= ns; a number below 1e8 has no clear unit. Text or
//	                 number, what the column's precision cannot keep must be 0.
//	Time, Time64     [-]h:mm:ss and a fraction, which the precision must keep.
//	                 No number: its unit could be s, ms or HHMMSS.
//	Nullable(T)      null, or what T takes; "" is not null
//	LowCardinality   of all that the server allows, also Nullable: as without;
//	                 of floats, -0 is 0
//	Array(T)         an array of what T takes, nested if T is an Array
//	Tuple            with names, an object with a member for each, to the letter;
//	                 without, an array of exactly its length. A member that is
//	                 absent or unknown is what such a field of the record is
//	Nested           not flattened, an array of such objects. Flattened, its
//	                 columns are arrays, as are any whose names are one up to the
//	                 first dot: the server wants them to have one length
//	Map(K, V)        an object; a name is to K what a string would be, and true and
//	                 false are a Bool. Two names that are one key ("1", "1.0") are
//	                 refused
//	Point, Ring, LineString, MultiLineString, Polygon, MultiPolygon
//	                 arrays of arrays of [x, y]
//	QBit(T, N)       an array of N numbers
//	JSON             an object, sent as text. To the server the value is its leaves
//	                 by path: a null member and an empty object have none. What it
//	                 would read as another value is refused: a number that a double
//	                 rounds, an integer beyond 64 bits, a name with a dot
//	SimpleAggregateFunction(f, T)
//	                 what T takes
//
// Which value becomes what is shown, with both ends of each range, in
// docs/conversions.md, which a test sends to the engine and reads back.
//
// Other types are an error of NewJSON that names column and type and says what
// to do instead: AggregateFunction, Dynamic, Variant, Geometry, JSON with typed
// or skipped paths, and a Map whose keys are composite. Ranges are those of
// ClickHouse: Date 1970-01-01 to 2149-06-06, DateTime to 2106-02-07 06:28:15
// UTC, Date32 and DateTime64 1900-01-01 to 2299-12-31, with nine digits to
// 2262-04-11 23:47:16.854775807, Time and Time64 -999:59:59 to 999:59:59 and
// any fraction.
//
// # What is absent
//
// A field that the record lacks becomes the column's DEFAULT, which the server
// evaluates (Defaults) so that all rows of a batch, and its retries, have the
// same, and NULL where the column is Nullable. Where it is neither, the record
// is rejected, unless Options.MissingFields asks for the type's own default: 0,
// "", the type's first day, [] or {}. Of Kafka's metadata, a timestamp or a
// header that the record does not have is absent too. null is not absent: it
// needs a Nullable column. A key column must be there, not null, and, if it is
// text, not blank: keys that are empty or nothing but white space (Unicode's),
// zero-width characters and NUL would make one row of many records. Columns that are MATERIALIZED or ALIAS are not sent, so
// that a field of their name is unknown; EPHEMERAL ones are refused.
//
// # The fingerprint
//
// It covers the members of the record. Left out are the fields, by path, that
// key columns are read from, and those named in Options.Ignore, as columns or
// as fields. Where such a path leads into an object, the object counts without
// that member. What comes from Kafka's metadata is no field.
//
// # What is not promised
//
// Nothing here knows whether the server will take a row: constraints and views
// are its own. Text is not normalised (NFC and NFD spellings are two ids). The
// order of a Map is the record's. There is no clock and no I/O. A JSON may be
// shared, a Block belongs to one goroutine at a time.
package decode
