package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
)

// Writer writes a recording. It does not keep written data in memory.
type Writer struct {
	buffer *bufio.Writer
	zip    *gzip.Writer
	lines  *json.Encoder
	end    End
}

// NewWriter returns a writer of a recording, and writes its header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format = Format
	h.Time = h.Time.UTC()
	buffer := bufio.NewWriter(w)
	zip := gzip.NewWriter(buffer)
	lines := json.NewEncoder(budget.CheckedWriter(zip, limit()))
	lines.SetEscapeHTML(false)
	out := &Writer{buffer: buffer, zip: zip, lines: lines}
	return out, out.Write(Line{Header: &h})
}

// Write writes a line.
func (w *Writer) Write(l Line) error {
	if l.Object != nil {
		w.end.Objects++
	}
	return w.lines.Encode(l)
}

// limit returns a function that returns an error for a line that Read would reject. The encoder writes each line in a
// single call.
func limit() func(line []byte) error {
	size, lines := 0, 0
	return func(line []byte) error {
		size += len(line)
		lines++
		var err error
		switch {
		case len(line) > lineMax:
			err = budget.TooLarge("", "a line of the recording", lineMax)
		case size > sizeMax:
			err = budget.TooLarge("", "the recording", sizeMax)
		case lines > linesMax:
			err = budget.TooMany("", "the recording", "lines", linesMax)
		default:
			return nil
		}
		return hint.Errorf("record fewer objects with -n NAMESPACE", "%w", err)
	}
}

// Unknown adds a description of data that could not be read to the end of the recording.
func (w *Writer) Unknown(what string) { w.end.Unknown = append(w.end.Unknown, what) }

// Close completes the recording and returns its last line.
func (w *Writer) Close() (End, error) {
	err := w.Write(Line{End: &w.end})
	return w.end, errors.Join(err, w.zip.Close(), w.buffer.Flush())
}
