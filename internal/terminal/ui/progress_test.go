package ui

import (
	"strings"
	"testing"
	"time"
)

// TestProgressLine checks that the line is no wider than the terminal and keeps its counts.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	p := &Progress{terminal: &Terminal{}, now: func() time.Time { return began.Add(83400 * time.Millisecond) }, began: began, text: "comparing objects of Kustomization/apps/shop\n"}
	p.Count(3, 146)
	if got, want := p.line(80), "◎ comparing objects of Kustomization/apps/shop  3 of 146 (1m23s)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := p.line(40), "◎ comparing objects… 3 of 146 (1m23s)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Bytes(3<<20+512<<10, 40<<20)
	if got := p.line(80); !strings.HasSuffix(got, " 3.5 MiB of 40.0 MiB (1m23s)") {
		t.Error(got)
	}
	p.Bytes(700<<10, 0)
	if got := p.line(80); !strings.HasSuffix(got, " 700 KiB (1m23s)") {
		t.Error(got)
	}
}

// TestProgressElsewhere checks that nothing is written without a terminal.
func TestProgressElsewhere(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	terminal := New(strings.NewReader(""), &b, func(string) string { return "" })
	p := terminal.Progress(time.Now, "working")
	p.Count(1, 2)
	p.Done()
	p.Done()
	if b.Len() > 0 || terminal.Redraws() {
		t.Errorf("wrote %q", b.String())
	}
}

// TestProgressDoneAtOnce checks Done before the line is drawn.
func TestProgressDoneAtOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	terminal := New(strings.NewReader(""), &b, func(string) string { return "" })
	terminal.redraws = true
	for range 1000 {
		terminal.Progress(time.Now, "working").Done()
	}
	if b.Len() > 0 {
		t.Errorf("wrote %q", b.String())
	}
}
