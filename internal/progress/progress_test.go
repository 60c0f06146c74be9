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
		"drain:  50 % 5,000 of 10,000 records (1,000/s, 5s left)\n" +
		"drain: 100 % 10,000 of 10,000 records (1,000/s)\n" +
		"drain: 100 % 10,000 of 10,000 records (1,000/s) waits for Redis\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestATerminalGetsOneLineThatIsWipedWhenItShrinks(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	b := Start(Options{W: &out, Label: "x", Total: 4, Terminal: true, Width: func() int { return 80 }, Now: func() time.Time { return now }})
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

// A line that is wider than the terminal wraps, and every drawing would leave a line behind.
func TestTheBarKeepsWithinTheTerminal(t *testing.T) {
	for _, width := range []int{200, 100, 80, 60, 40, 20, 1} {
		var out strings.Builder
		now := time.Unix(0, 0)
		b := Start(Options{W: &out, Label: "demo", Unit: "rows in the table", Total: 190_000, Terminal: true, Width: func() int { return width },
			Now: func() time.Time { return now }})
		b.Note("(200,000 records produced; 6 crashes, 7 cuts; now: kill -9 while an acknowledgement is on its way)")
		now = now.Add(90 * time.Second)
		b.Set(95_000)
		b.Done()
		for drawing := range strings.SplitSeq(strings.Trim(out.String(), "\r\n"), "\r") {
			if n := len([]rune(drawing)); n >= width && n > 1 {
				t.Errorf("%d letters on a terminal of %d: %q", n, width, drawing)
			}
		}
		if width >= 80 && !strings.Contains(out.String(), "50 % 95,000 of 190,000 rows in the table") {
			t.Errorf("at %d letters the amount is not told: %q", width, out.String())
		}
	}
}

// Log lines beside a bar must neither be written into it nor vanish under it.
func TestLinesAreWrittenAboveTheBar(t *testing.T) {
	var out strings.Builder
	s := NewScreen(&out)
	now := time.Unix(0, 0)
	_, _ = s.Write([]byte("before\n"))
	b := Start(Options{W: s.Bar(), Label: "x", Terminal: true, Width: func() int { return 80 }, Now: func() time.Time { return now }})
	_, _ = s.Write([]byte("a line\n"))
	now = now.Add(time.Second)
	b.Set(7)
	b.Done()
	_, _ = s.Write([]byte("after\n"))
	if want := "before\n\rx: 0\r    \ra line\n\rx: 0\rx: 7 (7/s)\rx: 7 (7/s)\nafter\n"; out.String() != want {
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
