package helper

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// excerptMax is the maximum size of an excerpt. It is sufficient for errors and for the first line
// of a crash.
const excerptMax = 4 << 10

// excerpt keeps the first lines that a process writes to stderr, without duplicates.
type excerpt struct {
	mu    sync.Mutex
	lines []string
	size  int
	line  bytes.Buffer
}

// Write implements io.Writer.
func (e *excerpt) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for rest, more := p, true; more; {
		var part []byte
		part, rest, more = bytes.Cut(rest, []byte("\n"))
		e.line.Write(part[:min(len(part), excerptMax-e.line.Len())])
		if more {
			e.keep()
		}
	}
	return len(p), nil
}

// keep adds the current line. The caller must hold e.mu.
func (e *excerpt) keep() {
	line := e.line.String()
	e.line.Reset()
	if e.size+len(line) <= excerptMax && strings.TrimSpace(line) != "" && !slices.Contains(e.lines, line) {
		e.lines = append(e.lines, line)
		e.size += len(line)
	}
}

// all returns the lines, including an incomplete last line.
func (e *excerpt) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keep()
	return e.lines
}

func (e *excerpt) contains(any ...string) bool {
	lines := e.all()
	return slices.ContainsFunc(any, func(s string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, s) })
	})
}

// report calls to with each line except the stack traces of a crash.
func (e *excerpt) report(to func(line string)) {
	if e.contains("out of memory", "cannot allocate memory", "goroutine ", "runtime", "00000000") {
		return
	}
	for _, line := range e.all() {
		to(line)
	}
}
