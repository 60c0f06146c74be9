package config

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes; in YAML a number with its unit: 16MiB.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, // longest names first: "B" ends them all
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

const sizeUnitNames = "B, KiB, GiB, TiB, kB, MB, GB, TB"

// String is the form that ParseSize reads, in the largest binary unit that is exact.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// ParseSize reads a size with its unit. A bare number is refused: 16 of what?
func ParseSize(text string) (Size, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || n < 0 || n*float64(u.bytes) > 1<<62 || strings.ContainsAny(digits, "eExXpP_nN") {
			break
		}
		return Size(n * float64(u.bytes)), nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("has no unit: write %sMiB (or %s)", text, sizeUnitNames)
	}
	return 0, fmt.Errorf("is no size: write a number with a unit, like 16MiB (or %s)", sizeUnitNames)
}

// ParseDuration reads Go's durations and days: 1s, 90m, 1h30m, 7d, 1d12h. Only 0 goes without a unit.
func ParseDuration(text string) (time.Duration, error) {
	days, rest := int64(0), text
	if before, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("is no duration: write a number with a unit, like 5s, 90m or 7d")
		}
		if days, rest = int64(n), after; rest == "" {
			rest = "0"
		}
	}
	if d, err := time.ParseDuration(rest); err == nil && (days == 0 || d >= 0) {
		return time.Duration(days)*24*time.Hour + d, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("has no unit: write %ss (or ms, m, h, d)", text)
	}
	return 0, fmt.Errorf("is no duration: write a number with a unit, like 5s, 90m or 7d")
}

// FormatDuration writes a duration as people do in sink.yaml: 24h, not 24h0m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if d == 0 {
		return "0"
	}
	return text
}

// Secret is a value that must not reach a log, an error or a screen: whatever prints it prints ***. Only Reveal gives it away.
type Secret struct {
	value  string
	reread func() (string, error) // set when it comes from ${file:…}: a rotated secret is read again
}

// NewSecret is a secret that doesn't come from a file, for tests and tools.
func NewSecret(value string) Secret { return Secret{value: value} }

// IsSet tells whether there is a secret at all; an empty one is none.
func (s Secret) IsSet() bool { return s.value != "" }

// Reveal returns the secret as it is now: one that stands in the file as ${file:…} is read again, so that a rotated one is used.
func (s Secret) Reveal() (string, error) {
	if s.reread == nil {
		return s.value, nil
	}
	return s.reread()
}

// String is what every way of printing gives: ***, or nothing for no secret.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "***"
}

// GoString is for %#v.
func (s Secret) GoString() string { return s.String() }

// Format is for every verb: %x of a struct would else spell the letters.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is for JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML is for YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
