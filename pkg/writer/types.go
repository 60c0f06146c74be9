package writer

import (
	"regexp"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// guardedTypes are those that a statement may name only under a setting, even where a table has them already; and our inserts name them all, in the structure of
// input(). Whoever made the table has thought about them.
var guardedTypes = []struct {
	types   *regexp.Regexp
	setting string
	off, on string
}{
	{regexp.MustCompile(`LowCardinality\((Nullable\()?(U?Int|Float|BFloat|Date|Time|UUID|IPv|Bool|Interval)`), "allow_suspicious_low_cardinality_types", "0", "1"},
	{regexp.MustCompile(`FixedString\(\d{3,}\)`), "allow_suspicious_fixed_string_types", "0", "1"},
	{regexp.MustCompile(`Nullable\((Tuple|Point)`), "enable_nullable_tuple_type", "0", "1"},
	{regexp.MustCompile(`\bTime(64)?\b`), "enable_time_time64_type", "0", "1"},
	{regexp.MustCompile(`\bBFloat16\b`), "allow_experimental_bfloat16_type", "0", "1"},
	{regexp.MustCompile(`\bNested\(`), "flatten_nested", "1", "0"}, // it would be taken apart into columns, of which the table has none
	{regexp.MustCompile(`\bJSON\b`), "enable_json_type", "0", "1"},
	{regexp.MustCompile(`\bQBit\b`), "enable_qbit_type", "0", "1"},
	{regexp.MustCompile(`\bJSON\b`), "allow_experimental_json_type", "0", "1"},
}

// naming are the settings that a statement with these types needs and the user's profile doesn't have.
func (f *facts) naming(types string) (out []proto.Setting) {
	for _, g := range guardedTypes {
		if f.settings[g.setting] == g.off && g.types.MatchString(types) {
			out = append(out, proto.Setting{Key: g.setting, Value: g.on, Important: true})
		}
	}
	return out
}

// typesOf is the text of all types of a block.
func typesOf(in proto.Input) string {
	var b strings.Builder
	for _, c := range in {
		b.WriteString(string(c.Data.Type()))
		b.WriteByte(' ')
	}
	return b.String()
}

func (t *Table) types() string {
	var b strings.Builder
	for _, c := range t.Columns {
		b.WriteString(c.Type)
		b.WriteByte(' ')
	}
	return b.String()
}
