package logs

import (
	"bytes"
	"encoding/json"
	"regexp"
	"time"
)

// Entry is a line of a controller's log.
type Entry struct {
	// At is when it was said, Pod who said it.
	At  time.Time
	Pod string
	// Time is the time as the controller writes it.
	Time, Level string
	// Kind, Namespace and Name are the object that it is about, if it is about one.
	Kind, Namespace, Name string
	Message, Error        string
	// Plain says that the line is no record but text, such as a panic's.
	Plain bool

	text []byte
	// order is At, or that of an earlier line of the pod where that is later.
	order time.Time
}

// record is how the controllers write a line. Older ones name the kind otherwise.
type record struct {
	Level     string          `json:"level"`
	Time      json.RawMessage `json:"ts"`
	Message   string          `json:"msg"`
	Error     string          `json:"error"`
	Kind      string          `json:"controllerKind"`
	OlderKind string          `json:"reconciler kind"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
}

// entry reads a line. It keeps the line's text, which holds only until the
// next line of the source is read.
func (s *source) entry(l line) Entry {
	e := Entry{At: l.at, Pod: s.pod.Name, text: l.text}
	var r record
	if !bytes.HasPrefix(l.text, []byte("{")) || json.Unmarshal(l.text, &r) != nil {
		s.plain = plainLevel(l.text, s.plain)
		e.Plain, e.Level, e.Message = true, s.plain, string(l.text)
		e.Time = l.at.UTC().Format("2006-01-02T15:04:05.000Z")
		return e
	}
	s.plain = ""
	e.Level, e.Message, e.Error = r.Level, r.Message, r.Error
	e.Kind, e.Namespace, e.Name = r.Kind, r.Namespace, r.Name
	if e.Kind == "" {
		e.Kind = r.OlderKind
	}
	e.Time = string(bytes.Trim(r.Time, `"`))
	if at, err := time.Parse(time.RFC3339Nano, e.Time); err == nil {
		e.At = at
	}
	return e
}

var (
	// klogHeader is how Kubernetes' libraries begin a line: Wmmdd hh:mm:ss.
	klogHeader = regexp.MustCompile(`^([IWEF])\d{4} \d\d:\d\d:\d\d`)
	dying      = regexp.MustCompile(`^(panic:|fatal error:|goroutine \d+ \[|runtime: |SIG[A-Z]+:)`)
)

// plainLevel is the level of a line that does not name one; the lines below a
// panic belong to it.
func plainLevel(text []byte, before string) string {
	m := klogHeader.FindSubmatch(text)
	switch {
	case m != nil && (m[1][0] == 'E' || m[1][0] == 'F'), m == nil && dying.Match(text):
		return "error"
	case m == nil && before != "":
		return before
	}
	return "info"
}
