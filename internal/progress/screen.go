package progress

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Screen is a terminal with a bar in its last line and whole lines above it.
type Screen struct {
	w io.Writer

	mu  sync.Mutex
	bar string // as last drawn; "": none
}

// NewScreen shares a terminal between a bar and lines.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Write writes lines above the bar.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar == "" {
		return s.w.Write(p)
	}
	wipe := "\r" + strings.Repeat(" ", len([]rune(s.bar))) + "\r"
	if _, err := io.WriteString(s.w, wipe+string(p)+"\r"+s.bar); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Bar is where the bar draws.
func (s *Screen) Bar() io.Writer { return drawing{s} }

type drawing struct{ s *Screen }

func (d drawing) Write(p []byte) (int, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.s.bar = ""
	if text := string(p); strings.HasPrefix(text, "\r") {
		d.s.bar = strings.TrimRight(text[1:], " ")
	}
	return d.s.w.Write(p)
}

// Width is how many letters fit in a line of the terminal behind w; 80 where that can't be told.
func Width(w io.Writer) int {
	switch v := w.(type) {
	case drawing:
		return Width(v.s.w)
	case *os.File:
		if size, err := unix.IoctlGetWinsize(int(v.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 80
}
