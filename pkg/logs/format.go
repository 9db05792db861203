package logs

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Format writes a line of a log, in several writes.
type Format func(io.Writer, *Entry) error

// Text writes lines as in Flux 2: time, level, object, message and error. Credentials in addresses
// are masked.
func Text(w io.Writer, e *Entry) error { return writeText(w, e, printable.Line(e.Level)) }

// Screen writes lines for a terminal, where paint colors the level.
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
	text, err := recordOf(e)
	if err != nil {
		return err
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
	return writeAll(w, `{"pod":`, string(pod), comma, printable.JSON(string(rest)), "\n")
}

// recordOf returns a line as a JSON object with credentials masked.
func recordOf(e *Entry) ([]byte, error) {
	if e.Plain {
		return json.Marshal(map[string]string{"level": e.Level, "ts": e.At.UTC().Format(time.RFC3339Nano), "msg": redacted(e.Message)})
	}
	text := []byte(redacted(string(e.text)))
	if bytes.Equal(text, e.text) || json.Valid(text) {
		return text, nil
	}
	// Masking has removed the end of a string, for example of a private key that was cut off.
	var value any
	if err := json.Unmarshal(e.text, &value); err != nil {
		return nil, err
	}
	return json.Marshal(redactedStrings(value))
}

func redactedStrings(value any) any {
	switch value := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(value))
		for key := range value {
			masked[redacted(key)] = redactedStrings(value[key])
		}
		return masked
	case []any:
		for i := range value {
			value[i] = redactedStrings(value[i])
		}
	case string:
		return redacted(value)
	}
	return value
}
