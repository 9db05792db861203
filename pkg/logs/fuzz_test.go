package logs

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"
)

// FuzzLines checks that every line of a log, of a controller or an application, is read once and in
// order, and is printed as one record of JSON, and as text that controls no terminal.
func FuzzLines(f *testing.F) {
	for _, text := range []string{
		"2026-11-01T10:00:00.1Z {\"level\":\"info\",\"ts\":\"2026-11-01T10:00:00Z\",\"msg\":\"stored\",\"name\":\"app\"}\n",
		"2026-11-01T10:00:00Z panic: x\n2026-11-01T10:00:01Z goroutine 1 [running]:\n", "{}\n{ }\n{\"level\":1}\nx", "{\"level\":\"\\u001b[2J\"}\r\n",
		"{\"msg\":\"\u009b\u202e\"}\n\n\n", "{\"msg\":\"https://u:p@x?token=abc\"}\n", "W0102 03:04:05.6 x\n2026-11-01T10:00:00Z", "{\"a\":1}{\"b\":2}\n", "://?token=\"\n", "{\"msg\":\"://?token=\\\"\"}\n{\"msg\":\"https://x -----BEGIN PRIVATE KEY-----\"}\n", "\xff\xfe\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, app := &source{pod: Pod{Name: "source-controller-0"}}, &source{pod: Pod{Name: "web-0", Application: true}}
		from := newLines(io.NopCloser(strings.NewReader(text)))
		read := 0
		for {
			l, err := from.next()
			if err != nil {
				break
			}
			read++
			for _, e := range []Entry{s.entry(l), app.entry(l)} {
				if err := checkFormats(&e); err != "" {
					t.Errorf("%q of %q: %s", e.text, text, err)
				}
			}
		}
		if want := strings.Count(text, "\n"); read < want || read > want+1 {
			t.Errorf("%d lines are read of %q", read, text)
		}
	})
}

// checkFormats returns what is wrong with the printed forms of a line.
func checkFormats(e *Entry) string {
	var record, plain bytes.Buffer
	if err := JSON(&record, e); err != nil {
		return err.Error()
	}
	if err := Text(&plain, e); err != nil {
		return err.Error()
	}
	var value map[string]any
	if err := json.Unmarshal(record.Bytes(), &value); err != nil {
		return "as JSON " + record.String() + ": " + err.Error()
	}
	switch {
	case value["pod"] != e.Pod && !strings.Contains(string(e.text), "pod"):
		return "as JSON " + record.String() + ": without the pod"
	case bytes.Count(record.Bytes(), []byte("\n")) != 1:
		return "as JSON " + record.String() + ": several lines"
	case bytes.ContainsFunc(plain.Bytes(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "as text " + plain.String()
	}
	return ""
}
