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
	leastBar  = 8 // a narrower one shows nothing
)

// Options say where a bar goes. Only W and Label are needed.
type Options struct {
	W        io.Writer
	Label    string
	Unit     string           // "records"; "": none
	Total    int64            // 0: not known, only the count is shown
	Terminal bool             // see IsTerminal
	Width    func() int       // of the terminal, in letters; nil: Width(W)
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
	if o.Width == nil {
		o.Width = func() int { return Width(o.W) }
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
	if !b.o.Terminal {
		_, _ = fmt.Fprintln(b.o.W, b.text(now, barWidth))
		return
	}
	text := b.fitted(now, b.o.Width()-1) // a letter in the last column would begin the next line
	pad := max(b.width-len([]rune(text)), 0)
	b.width = len([]rune(text))
	_, _ = fmt.Fprint(b.o.W, "\r"+text+strings.Repeat(" ", pad))
}

// fitted is the text in at most so many letters: a line that wraps can't be drawn over. First the bar gives way, then the note.
func (b *Bar) fitted(now time.Time, width int) string {
	text := b.text(now, barWidth)
	over := len([]rune(text)) - width
	if over <= 0 {
		return text
	}
	text = b.text(now, max(barWidth-over, leastBar))
	if letters := []rune(text); len(letters) > width {
		text = string(letters[:max(width-1, 0)]) + "…"
	}
	return text
}

func (b *Bar) text(now time.Time, width int) string {
	parts := []string{b.o.Label + ":"}
	amount := Thousands(b.count)
	if b.o.Total > 0 {
		done := min(float64(b.count)/float64(b.o.Total), 1)
		if b.o.Terminal {
			full := int(done * float64(width))
			parts = append(parts, "["+strings.Repeat("█", full)+strings.Repeat("·", width-full)+"]")
		}
		amount = fmt.Sprintf("%s of %s", amount, Thousands(b.o.Total))
		parts = append(parts, fmt.Sprintf("%3.0f %%", done*100))
	}
	if b.o.Unit != "" {
		amount += " " + b.o.Unit
	}
	parts = append(parts, amount)
	if speed := Speed(b.count, b.o.Total, now.Sub(b.start)); speed != "" {
		parts = append(parts, "("+speed+")")
	}
	if b.note != "" {
		parts = append(parts, b.note)
	}
	return strings.Join(parts, " ")
}

// Speed tells how fast so many were done, and how long the rest will take: "1,000/s, 12s left". Empty while it can't be told.
func Speed(count, total int64, took time.Duration) string {
	if took < time.Second || count <= 0 {
		return ""
	}
	perSecond := float64(count) / took.Seconds()
	text := Thousands(int64(perSecond)) + "/s"
	if count < total {
		text += ", " + time.Duration(float64(total-count)/perSecond*float64(time.Second)).Round(time.Second).String() + " left"
	}
	return text
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
