package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
)

// The limits of a recording: its uncompressed size, the length of a line, the number of lines,
// and the compression ratio, which applies to recordings larger than ratioFrom.
const (
	sizeMax   = 512 << 20
	lineMax   = 8 << 20
	linesMax  = 2_000_000
	ratioMax  = 250
	ratioFrom = 64 << 20
)

// ErrIncomplete is returned for a recording without the End line.
var ErrIncomplete = errors.New("the recording is incomplete: its end is missing")

// Raw is a line whose object is not decoded.
type Raw struct {
	Line
	Object json.RawMessage `json:"object,omitempty"`
}

// Read calls visit with each line after the header. The file is untrusted, so its size is limited.
func Read(r io.Reader, visit func(Raw) error) (Header, error) {
	var stored, size int64
	zip, err := gzip.NewReader(bufio.NewReader(budget.Counted(r, 0, func(done, _ int64) { stored = done })))
	if err != nil {
		return Header{}, unreadable("not a recording: %w", err)
	}
	lines := bufio.NewScanner(budget.Checked(zip, func(read []byte, _ error) error {
		size += int64(len(read))
		return allowed(size, stored)
	}))
	lines.Buffer(make([]byte, 64<<10), lineMax)
	var h *Header
	ended := false
	for n := 1; lines.Scan(); n++ {
		if n > linesMax {
			return Header{}, &budget.ExceededError{Fact: fmt.Sprintf("the recording has more than %d lines", linesMax)}
		}
		if ended {
			return Header{}, unreadable("line %d: data after the end of the recording", n)
		}
		l, err := parse(lines.Bytes())
		if lines.Err() != nil {
			break // a read error has truncated the line
		}
		if err != nil {
			return Header{}, unreadable("line %d: %w", n, err)
		}
		switch {
		case n == 1:
			if h, err = header(l); err != nil {
				return Header{}, err
			}
			continue
		case l.Header != nil:
			return Header{}, unreadable("line %d: duplicate header", n)
		}
		ended = l.End != nil
		if err := visit(l); err != nil {
			return Header{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Header{}, &budget.ExceededError{Fact: "a line of the recording is longer than " + budget.Size(lineMax)}
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil && !ended:
		return Header{}, hint.Errorf("copy the file again, or record the cluster again", "%w", ErrIncomplete)
	case err != nil:
		return Header{}, fmt.Errorf("reading the recording: %w", err)
	}
	return *h, nil
}

func unreadable(format string, args ...any) error {
	return hint.Errorf("record the cluster with 'flux record'", format, args...)
}

// parse decodes a line, which has exactly one field.
func parse(text []byte) (Raw, error) {
	var l Raw
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, err
	}
	fields := 0
	for _, is := range []bool{l.Header != nil, l.Document != nil, l.Object != nil, l.List != nil, l.Log != nil, l.End != nil} {
		if is {
			fields++
		}
	}
	if fields != 1 {
		return l, errors.New("not a line of a recording")
	}
	return l, nil
}

func header(l Raw) (*Header, error) {
	switch {
	case l.Header == nil:
		return nil, unreadable("not a recording: it has no header")
	case l.Header.Format != Format && l.Header.Format != formatV1:
		return nil, hint.Errorf("use the version of flux that wrote it", "the recording has the format %.40q, not %s", l.Header.Format, Format)
	}
	return l.Header, nil
}

// allowed returns an error if the uncompressed size exceeds the limit or the compression ratio is too high.
func allowed(size, stored int64) error {
	switch {
	case size > sizeMax:
		return &budget.ExceededError{Fact: "the recording is larger than " + budget.Size(sizeMax) + " without compression"}
	case size > ratioFrom && size > ratioMax*stored:
		return &budget.ExceededError{Fact: fmt.Sprintf("the compression ratio of the recording is above %d", ratioMax)}
	}
	return nil
}
