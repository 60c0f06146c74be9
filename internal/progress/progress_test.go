package progress

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestALogGetsFewWholeLines(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	b := Start(Options{W: &out, Label: "drain", Unit: "records", Total: 10_000, Now: func() time.Time { return now }})
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		b.Add(100)
	}
	b.Note("waits for Redis")
	b.Done()
	b.Done()
	b.Add(1)
	want := "drain:   0 % 0 of 10,000 records\n" +
		"drain:  50 % 5,000 of 10,000 records (1,000/s)\n" +
		"drain: 100 % 10,000 of 10,000 records (1,000/s)\n" +
		"drain: 100 % 10,000 of 10,000 records (1,000/s) waits for Redis\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestATerminalGetsOneLineThatIsWipedWhenItShrinks(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	b := Start(Options{W: &out, Label: "x", Total: 4, Terminal: true, Now: func() time.Time { return now }})
	b.Set(1) // too soon to be drawn
	now = now.Add(barEvery)
	b.Set(2)
	now = now.Add(barEvery)
	b.Note("a note")
	now = now.Add(barEvery)
	b.Note("")
	b.Done()
	bar := func(full int) string {
		return "[" + strings.Repeat("█", full) + strings.Repeat("·", barWidth-full) + "]"
	}
	want := "\rx: " + bar(0) + "   0 % 0 of 4" + "\rx: " + bar(15) + "  50 % 2 of 4" + "\rx: " + bar(15) + "  50 % 2 of 4 a note" +
		"\rx: " + bar(15) + "  50 % 2 of 4       " + "\rx: " + bar(15) + "  50 % 2 of 4\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
}

func TestOnlyATerminalIsTakenForOne(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if IsTerminal(f) || IsTerminal(&strings.Builder{}) {
		t.Error("a file or a buffer was taken for a terminal")
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100000: "100,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
