package nearmiss

import "testing"

func TestATypoIsNamedAndAStrangerIsNot(t *testing.T) {
	keys := []string{"brokers", "group", "session_timeout", "rebalance_timeout", "max_rows", "max_bytes", "topics", "topic_pattern", "key"}
	for word, want := range map[string]string{
		"broker":          "brokers",
		"brokres":         "brokers",
		"Session-Timeout": "session_timeout",
		"topic":           "topics",
		"maxrows":         "max_rows",
		"keys":            "key",
		"rebalance":       "rebalance_timeout",
		"password":        "",
		"x":               "",
		"":                "",
	} {
		if got := Of(word, keys); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Hint("grup", keys); got != `; did you mean "group"?` {
		t.Errorf("Hint = %q", got)
	}
	if got := Hint("zzz", keys); got != "" {
		t.Errorf("Hint of a stranger = %q", got)
	}
}
