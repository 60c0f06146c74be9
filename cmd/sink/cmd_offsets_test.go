package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncesink/oncesink/internal/ops"
)

// A list that is read as one number, or `all` that takes an offset, would move the wrong partitions.
func TestPartitionsOfAResolutionAreReadWholeOrRefused(t *testing.T) {
	for text, want := range map[string][]int32{"3": {3}, "0,3,5": {0, 3, 5}, "5, 0,5": {0, 5}, "all": nil} {
		r := ops.Resolution{Topic: "t", Vouch: true, To: -1, Last: -1}
		if err := readResolution(&r, text, "", ""); err != nil || !slices.Equal(r.Partitions, want) {
			t.Errorf("%q: %v, %v", text, r.Partitions, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "0,", "0,,1", "0-3", "all,1", "ALL", "99999999999"} {
		r := ops.Resolution{Topic: "t", Vouch: true, To: -1, Last: -1}
		if err := readResolution(&r, text, "", ""); err == nil {
			t.Errorf("%q was taken for %v", text, r.Partitions)
		}
	}
	for _, text := range []string{"all", "0,1"} {
		r := ops.Resolution{Topic: "t", To: -1, Last: -1}
		if err := readResolution(&r, text, "17", ""); err == nil {
			t.Errorf("--partition %s --to 17 was taken", text)
		}
		r = ops.Resolution{Topic: "t", Vouch: true, To: -1, Last: -1}
		if err := readResolution(&r, text, "", "17-20"); err == nil {
			t.Errorf("--partition %s --range 17-20 was taken", text)
		}
	}
	r := ops.Resolution{Topic: "t", To: -1, Last: -1}
	if err := readResolution(&r, "0", "17", ""); err != nil || r.To != 17 {
		t.Errorf("one partition: %+v, %v", r, err)
	}
}

// The ways on have names of their own, as the interface lists them; one with another's option was meant otherwise.
func TestWaysOnAreOneAtATime(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"accept-gap --topic t --partition 0 --to 5", "a way on by itself"},
		{"drop-intent --topic t --partition 0 --views-recomputed", "a way on by itself"},
		{"accept-gap --topic t", "name the partition"},
		{"drop-intent --partition 3", "name the partition"},
		{"accept --topic t --partition 0", "accept-gap"},
	} {
		code, _, stderr := sink(t, append([]string{"offsets", "-c", "../../examples/settlements.yaml"}, strings.Fields(c.args)...)...)
		if code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %s", c.args, code, stderr)
		}
	}
}
