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
	// keptBuffer is how large a buffer stays from one line to the next.
	keptBuffer = 256 << 10
)

// line is a line of a container: when it was printed, and what.
type line struct {
	at   time.Time
	text []byte
	// cut says that the log ended in the middle of it.
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

// next returns the next line; its text holds until the next call. A last line
// that has no end is returned where the log ends, and given up where the
// connection does: there it comes again, whole.
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

// parseLine cuts off the time that the kubelet puts before a line.
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
