package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	readSize = 32 << 10
	// keptBuffer is the maximum size of a buffer that is reused for the next line.
	keptBuffer = 256 << 10
)

// line is a log line of a container, with its timestamp.
type line struct {
	at   time.Time
	text []byte
	// cut reports whether the log ended within the line.
	cut bool
}

// lines reads lines of any length.
type lines struct {
	from   io.ReadCloser
	reader *bufio.Reader
	long   []byte
}

func newLines(from io.ReadCloser) *lines {
	return &lines{from: from, reader: bufio.NewReaderSize(from, readSize)}
}

// next returns the next line, whose text is valid until the next call. An unterminated last line
// is returned at the end of the log, and dropped if the connection breaks: the next stream repeats
// it.
func (l *lines) next() (line, error) {
	if cap(l.long) > keptBuffer {
		l.long = nil
	}
	l.long = l.long[:0]
	for {
		part, err := l.reader.ReadSlice('\n')
		switch {
		case err == nil && len(l.long) == 0:
			return parseLine(part[:len(part)-1]), nil
		case err == nil:
			l.long = append(l.long, part[:len(part)-1]...)
			return parseLine(l.long), nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
		case errors.Is(err, io.EOF) && len(l.long)+len(part) > 0:
			l.long = append(l.long, part...)
			last := parseLine(l.long)
			last.cut = true
			return last, nil
		default:
			return line{}, err
		}
	}
}

// parseLine splits off the timestamp that the kubelet adds to a line.
func parseLine(text []byte) line {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if stamp, rest, ok := bytes.Cut(text, []byte(" ")); ok {
		if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
			return line{at: at, text: rest}
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		return line{at: at}
	}
	return line{text: text}
}
