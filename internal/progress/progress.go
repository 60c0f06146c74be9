// Package progress shows how far long work is: a bar on a terminal, plain lines elsewhere, both at most so often that nobody is flooded.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second // in a log, every line costs
	barWidth  = 30
)

// Options say where a bar goes. Only W and Label are needed.
type Options struct {
	W        io.Writer
	Label    string
	Unit     string           // "records"; "": none
	Total    int64            // 0: not known, only the count is shown
	Terminal bool             // see IsTerminal
	Now      func() time.Time // nil: the clock
}

// Bar is one piece of work under way. It is safe for concurrent use.
type Bar struct {
	o     Options
	every time.Duration

	mu     sync.Mutex
	count  int64
	note   string
	start  time.Time
	shown  time.Time
	width  int // letters of the last drawing, to be wiped
	closed bool
}

// IsTerminal tells whether w is one that can redraw a line.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Start shows the work at 0.
func Start(o Options) *Bar {
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Bar{o: o, every: lineEvery, start: o.Now()}
	if o.Terminal {
		b.every = barEvery
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show()
	return b
}

// Add counts n more.
func (b *Bar) Add(n int64) { b.update(func() { b.count += n }) }

// Set says how much is done altogether.
func (b *Bar) Set(count int64) { b.update(func() { b.count = count }) }

// Note is a word beside the count: what is being waited for.
func (b *Bar) Note(note string) { b.update(func() { b.note = note }) }

func (b *Bar) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	if !b.closed && b.o.Now().Sub(b.shown) >= b.every {
		b.show()
	}
}

// Done shows the last state and ends the line. The second call does nothing.
func (b *Bar) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	b.show()
	if b.o.Terminal {
		_, _ = fmt.Fprintln(b.o.W)
	}
}

// show draws; a writer that fails must not stop the work, so its errors are dropped.
func (b *Bar) show() {
	now := b.o.Now()
	b.shown = now
	text := b.text(now)
	if !b.o.Terminal {
		_, _ = fmt.Fprintln(b.o.W, text)
		return
	}
	pad := max(b.width-len([]rune(text)), 0)
	b.width = len([]rune(text))
	_, _ = fmt.Fprint(b.o.W, "\r"+text+strings.Repeat(" ", pad))
}

func (b *Bar) text(now time.Time) string {
	parts := []string{b.o.Label + ":"}
	amount := Thousands(b.count)
	if b.o.Total > 0 {
		done := min(float64(b.count)/float64(b.o.Total), 1)
		if b.o.Terminal {
			full := int(done * barWidth)
			parts = append(parts, "["+strings.Repeat("█", full)+strings.Repeat("·", barWidth-full)+"]")
		}
		amount = fmt.Sprintf("%s of %s", amount, Thousands(b.o.Total))
		parts = append(parts, fmt.Sprintf("%3.0f %%", done*100))
	}
	if b.o.Unit != "" {
		amount += " " + b.o.Unit
	}
	parts = append(parts, amount)
	if seconds := now.Sub(b.start).Seconds(); seconds >= 1 && b.count > 0 {
		parts = append(parts, fmt.Sprintf("(%s/s)", Thousands(int64(float64(b.count)/seconds))))
	}
	if b.note != "" {
		parts = append(parts, b.note)
	}
	return strings.Join(parts, " ")
}

// Thousands writes 1234567 as 1,234,567.
func Thousands(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}
