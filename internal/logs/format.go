package logs

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/internal/redact"
)

// Format writes a line of a log, in several writes.
type Format func(io.Writer, *Entry) error

// Text writes lines as in Flux 2: time, level, object, message and error. Credentials in addresses
// are masked.
func Text(w io.Writer, e *Entry) error { return writeText(w, e, printable.Line(e.Level)) }

// Screen writes lines for a terminal, where paint colours the level.
func Screen(paint func(level string) string) Format {
	return func(w io.Writer, e *Entry) error { return writeText(w, e, paint(printable.Line(e.Level))) }
}

// writeText writes a line in parts, since copying one of a mebibyte would need twice the memory.
func writeText(w io.Writer, e *Entry, level string) error {
	about := e.Kind
	if e.Plain {
		about = "Pod/" + e.Pod
	} else if e.Kind != "" && e.Name != "" {
		about += "/" + e.Name + "." + e.Namespace
	}
	return writeAll(w, printable.Line(e.Time), " ", level, " ", printable.Line(about), " - ", shown(e.Message), " ", shown(e.Error), "\n")
}

func writeAll(w io.Writer, parts ...string) error {
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// shown returns printable text with credentials masked.
func shown(s string) string { return printable.Text(redacted(s)) }

// redacted masks credentials. Most texts have no address and are returned as they are.
func redacted(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return redact.Text(s)
}

// JSON writes a JSON record for each line: the pod, followed by the fields that the controller
// wrote. A text line is converted to a record.
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
	return writeAll(w, `{"pod":`, string(pod), comma, printable.JSON(redacted(string(rest))), "\n")
}
