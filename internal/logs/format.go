package logs

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/fluxkit/flux/internal/redact"
)

// Format writes a line of a log, in several pieces.
type Format func(io.Writer, *Entry) error

// Text writes lines as scripts know them: time, level, object, message and
// error. Credentials in addresses are masked.
func Text(w io.Writer, e *Entry) error { return writeText(w, e, e.Level) }

// Screen writes lines for a terminal: nothing in them can steer it, and paint
// colours the level.
func Screen(paint func(level string) string) Format {
	return func(w io.Writer, e *Entry) error {
		shown := *e
		shown.Message, shown.Error = printable(e.Message), printable(e.Error)
		return writeText(w, &shown, paint(e.Level))
	}
}

// writeText writes a line piece by piece: one of a mebibyte is not held twice.
func writeText(w io.Writer, e *Entry, level string) error {
	about := e.Kind
	if e.Plain {
		about = "Pod/" + e.Pod
	} else if e.Kind != "" && e.Name != "" {
		about += "/" + e.Name + "." + e.Namespace
	}
	return writeAll(w, e.Time, " ", level, " ", about, " - ", redacted(e.Message), " ", redacted(e.Error), "\n")
}

func writeAll(w io.Writer, parts ...string) error {
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// redacted looks only at texts that have an address at all, since most have none.
func redacted(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return redact.Text(s)
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, s)
}

// JSON writes a record a line, all its fields as the controller wrote them and
// the pod before them. Text that is no record becomes one.
func JSON(w io.Writer, e *Entry) error {
	text := e.text
	if e.Plain {
		var err error
		text, err = json.Marshal(map[string]string{"level": e.Level, "ts": e.At.UTC().Format(time.RFC3339Nano), "msg": e.Message})
		if err != nil {
			return err
		}
	}
	pod, err := json.Marshal(e.Pod)
	if err != nil {
		return err
	}
	rest := bytes.TrimLeft(text[1:], " \t")
	comma := ","
	if bytes.HasPrefix(rest, []byte("}")) {
		comma = ""
	}
	return writeAll(w, `{"pod":`, string(pod), comma, redacted(string(rest)), "\n")
}
