package ui

import (
	"fmt"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

const (
	// progressDelay is the time after which progress is shown, and progressPause
	// the time between updates.
	progressDelay, progressPause = time.Second, 100 * time.Millisecond
	clearLine                    = "\r\x1b[K"
)

// Progress is a line at the bottom of the terminal that shows the current operation and its
// duration, if it takes longer than a second. It is shown on terminals only.
type Progress struct {
	terminal *Terminal
	now      func() time.Time
	began    time.Time

	mu    sync.Mutex
	text  string
	count string
	stop  chan struct{}
	ended sync.WaitGroup
}

// Progress shows progress until Done is called. If several operations are in progress, it shows the most recent one.
func (t *Terminal) Progress(now func() time.Time, format string, args ...any) *Progress {
	p := &Progress{terminal: t, now: now, began: now(), text: fmt.Sprintf(format, args...)}
	if !t.redraws {
		return p
	}
	stop := make(chan struct{})
	p.stop = stop
	t.mu.Lock()
	if len(t.progress) > 0 {
		p.began = t.progress[0].began // p is part of the first operation
	}
	t.progress = append(t.progress, p)
	t.mu.Unlock()
	p.ended.Go(func() { p.run(stop) })
	return p
}

// Redraws reports whether progress can be shown.
func (t *Terminal) Redraws() bool { return t.redraws }

// Set changes the text.
func (p *Progress) Set(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// Count shows the number of completed items and, if known, the total.
func (p *Progress) Count(done, total int) {
	p.set(count(fmt.Sprint(done), fmt.Sprint(total), total > 0))
}

// Bytes shows the number of processed bytes and, if known, the total.
func (p *Progress) Bytes(done, total int64) {
	p.set(count(size(done), size(total), total > 0))
}

func (p *Progress) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count = text
}

func count(done, total string, known bool) string {
	if !known {
		return done
	}
	return done + " of " + total
}

// size formats a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	default:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
}

// Done removes the line. It may be called more than once.
func (p *Progress) Done() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	p.stop = nil
	p.ended.Wait()
	t := p.terminal
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.progress {
		if other == p {
			t.progress = append(t.progress[:i:i], t.progress[i+1:]...)
			break
		}
	}
	t.clear()
}

// run draws the line until stop is closed, which may be before run starts.
func (p *Progress) run(stop <-chan struct{}) {
	begin := time.NewTimer(p.terminal.delay())
	defer begin.Stop()
	select {
	case <-stop:
		return
	case <-begin.C:
	}
	tick := time.NewTicker(progressPause)
	defer tick.Stop()
	for {
		p.terminal.draw(p)
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// line returns the text, truncated to the width of the terminal.
func (p *Progress) line(columns int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := " (" + p.now().Sub(p.began).Truncate(time.Second).String() + ")"
	if p.count != "" {
		rest = " " + p.count + rest
	}
	text := p.terminal.masked(printable.Line(p.text))
	// The terminal prints ^C after the line, and the line must not wrap then.
	room := columns - hanging - len("^C") - 1 - fit.Width(rest)
	if runes := []rune(text); len(runes) > room && room > 0 {
		text = string(runes[:room-1]) + "…"
	}
	return "◎ " + text + rest
}

// draw prints the line of the most recent operation if the line has changed.
func (t *Terminal) draw(p *Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prompting || len(t.progress) == 0 || t.progress[len(t.progress)-1] != p {
		return
	}
	if line := p.line(Columns(t.err, t.env)); line != t.shown {
		fmt.Fprint(t.err, clearLine+line)
		t.shown = line
	}
}

// delay returns the delay before a new line is shown. It is zero if the line replaces another one.
func (t *Terminal) delay() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown != "" {
		return 0
	}
	return progressDelay
}

// NoProgress disables progress.
func (t *Terminal) NoProgress() { t.redraws = false }

// pause hides progress until resume is called.
func (t *Terminal) pause() (resume func()) {
	set := func(prompting bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.clear()
		t.prompting = prompting
	}
	set(true)
	return func() { set(false) }
}

// clear removes the line; the next draw prints it again.
func (t *Terminal) clear() {
	if t.shown != "" {
		fmt.Fprint(t.err, clearLine)
		t.shown = ""
	}
}
