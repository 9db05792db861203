package helper

import (
	"bytes"
	"io"
	"sync"
)

// excerptMax is enough for an error, and for the first line of a crash.
const excerptMax = 4 << 10

// excerpt keeps the beginning of the stderr of a process.
type excerpt struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (e *excerpt) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text.Write(p[:max(0, min(len(p), excerptMax-e.text.Len()))])
	return len(p), nil
}

func (e *excerpt) contains(any ...string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range any {
		if bytes.Contains(e.text.Bytes(), []byte(s)) {
			return true
		}
	}
	return false
}

// writeTo writes the excerpt to w, except for the stacks of a crash.
func (e *excerpt) writeTo(w io.Writer) {
	if e.contains("out of memory", "cannot allocate memory", "goroutine ", "runtime", "00000000") {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = w.Write(e.text.Bytes())
}
