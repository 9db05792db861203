package recording_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/kube/recording"
)

const head = `{"header":{"format":"flux-recording/v2","time":"2026-11-22T10:00:00Z","flux":"1.0.0","home":"flux-system"}}` + "\n"

func packed(t testing.TB, text io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := io.Copy(zip, text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	at := time.Date(2026, 11, 22, 11, 0, 0, 0, time.FixedZone("", 3600))
	w, err := recording.NewWriter(&b, recording.Header{Time: at, Flux: "1.0.0", Home: "flux-system"})
	if err != nil {
		t.Fatal(err)
	}
	w.Unknown("secrets: forbidden")
	for _, l := range []recording.Line{
		{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "a<b"}}},
		{List: &recording.List{Version: "v1", Resource: "pods", Kind: "Pod"}},
		{Log: &recording.Log{Pod: "a", Text: "one\ntwo\n"}},
	} {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	end, err := w.Close()
	if err != nil || end.Objects != 1 {
		t.Fatalf("%+v %v", end, err)
	}
	var lines []string
	h, err := recording.Read(bytes.NewReader(b.Bytes()), func(l recording.Raw) error {
		switch {
		case l.Object != nil:
			lines = append(lines, string(l.Object))
		case l.List != nil:
			lines = append(lines, l.List.Resource)
		case l.Log != nil:
			lines = append(lines, l.Log.Text)
		case l.End != nil:
			lines = append(lines, l.End.Unknown...)
		}
		return nil
	})
	if err != nil || !h.Time.Equal(at) || h.Time.Location() != time.UTC {
		t.Errorf("%+v %v", h, err)
	}
	if got, want := strings.Join(lines, "|"), `{"kind":"Pod","metadata":{"name":"a<b"}}|pods|one`+"\ntwo\n|secrets: forbidden"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n := range b.Len() {
		if _, err := recording.Read(bytes.NewReader(b.Bytes()[:n]), func(recording.Raw) error { return nil }); err == nil {
			t.Fatalf("the first %d of %d bytes are read as a recording", n, b.Len())
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const end = `{"end":{"objects":0}}` + "\n"
	zeros := func(n int64) io.Reader { return io.LimitReader(endless{}, n) }
	for name, c := range map[string]struct {
		content io.Reader
		want    string
	}{
		"nothing":       {strings.NewReader(""), "the recording is incomplete"},
		"no end":        {strings.NewReader(head), "the recording is incomplete"},
		"no header":     {strings.NewReader(end), "it has no header"},
		"other format":  {strings.NewReader(strings.Replace(head, "/v2", "/v3", 1) + end), `the recording has the format "flux-recording/v3", not flux-recording/v2`},
		"two headers":   {strings.NewReader(head + head + end), "line 2: duplicate header"},
		"after the end": {strings.NewReader(head + end + end), "line 3: data after the end of the recording"},
		"unknown line":  {strings.NewReader(head + `{"other":{}}` + "\n" + end), `line 2: json: unknown field "other"`},
		"two in a line": {strings.NewReader(head + `{"object":{},"log":{}}` + "\n" + end), "line 2: not a line of a recording"},
		"no line":       {strings.NewReader(head + "{}\n" + end), "line 2: not a line of a recording"},
		"no JSON":       {strings.NewReader(head + "[\n" + end), "line 2: "},
		"deep":          {strings.NewReader(head + `{"object":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}\n" + end), "exceeded max depth"},
		"long line":     {io.MultiReader(strings.NewReader(head), zeros(9<<20)), "a line of the recording is longer than 8 MiB"},
		"many lines":    {io.MultiReader(strings.NewReader(head), strings.NewReader(strings.Repeat(`{"log":{}}`+"\n", 2_000_001))), "more than 2000000 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := recording.Read(bytes.NewReader(packed(t, c.content)), func(recording.Raw) error { return nil })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := recording.Read(strings.NewReader("kind: List"), nil); err == nil || !strings.HasPrefix(err.Error(), "not a recording") {
		t.Errorf("a file that is not compressed: %v", err)
	}
}

// TestReadV1 reads the previous version of the format.
func TestReadV1(t *testing.T) {
	t.Parallel()
	text := strings.Replace(head, "/v2", "/v1", 1) + `{"end":{"objects":7}}` + "\n"
	h, err := recording.Read(bytes.NewReader(packed(t, strings.NewReader(text))), func(l recording.Raw) error {
		if l.End == nil || l.End.Objects != 7 {
			t.Errorf("got %+v", l)
		}
		return nil
	})
	if err != nil || h.Home != "flux-system" {
		t.Errorf("%+v %v", h, err)
	}
}

// TestReadBounds reads a small file that is much larger without compression, of short lines.
func TestReadBounds(t *testing.T) {
	t.Parallel()
	line := strings.NewReader(`{"object":{"a":"` + strings.Repeat(" ", 1<<20) + `"}}` + "\n")
	parts := []io.Reader{strings.NewReader(head)}
	for range 100 {
		parts = append(parts, io.NewSectionReader(line, 0, line.Size()))
	}
	_, err := recording.Read(bytes.NewReader(packed(t, io.MultiReader(parts...))), func(recording.Raw) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "the compression ratio of the recording is above 250") {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(head + `{"object":{"metadata":{"name":"a"}}}` + "\n" + `{"list":{"version":"v1"}}` + "\n" + `{"end":{"objects":1}}` + "\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ended := false
		_, err := recording.Read(bytes.NewReader(packed(t, bytes.NewReader(text))), func(l recording.Raw) error {
			ended = l.End != nil
			return nil
		})
		if err == nil && !ended {
			t.Error("a recording without an end was read")
		}
		if errors.Is(err, recording.ErrIncomplete) && ended {
			t.Error("a recording with an end is incomplete")
		}
	})
}
