package main

import (
	"slices"
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
