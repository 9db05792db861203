package logs

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/fluxkit/flux/internal/lazy"
)

// Entry is a line of a controller's log.
type Entry struct {
	// At is the time of the line, and Pod the name of the pod.
	At  time.Time
	Pod string
	// Time is the time in the controller's format.
	Time, Level string
	// Kind, Namespace and Name identify the object that the line is about, if any.
	Kind, Namespace, Name string
	Message, Error        string
	// Plain reports whether the line is text instead of JSON, such as a panic.
	Plain bool

	text []byte
	// order is At, or the time of an earlier line of the pod if that is later.
	order time.Time
}

// record is the JSON format of the controllers. Older versions have another key for the kind.
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

// entry parses a line. It refers to the text of the line, which is valid until the next line of
// the source is read.
func (s *source) entry(l line) Entry {
	e := Entry{At: l.at, Pod: s.pod.Label, text: l.text}
	var r record
	if s.pod.Application || !bytes.HasPrefix(l.text, []byte("{")) || json.Unmarshal(l.text, &r) != nil {
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
	// klogHeader matches the start of a line of klog: Wmmdd hh:mm:ss.
	klogHeader = lazy.Regexp(`^([IWEF])\d{4} \d\d:\d\d:\d\d`)
	dying      = lazy.Regexp(`^(panic:|fatal error:|goroutine \d+ \[|runtime: |SIG[A-Z]+:)`)
)

// plainLevel returns the level of a text line. The lines after a panic have its level.
func plainLevel(text []byte, before string) string {
	m := klogHeader().FindSubmatch(text)
	switch {
	case m != nil && (m[1][0] == 'E' || m[1][0] == 'F'), m == nil && dying().Match(text):
		return "error"
	case m == nil && before != "":
		return before
	}
	return "info"
}
