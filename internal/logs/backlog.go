package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

const (
	// firstWindow is how many lines from the end of a log are read at first to
	// find those that a filter lets through, and wider how much more each time
	// that they are too few.
	firstWindow = 1000
	wider       = 10
	// backlogBytes bounds what is kept of one log.
	backlogBytes = 8 << 20
)

// all reports whether the filter lets every line through.
func (f Filter) all() bool {
	return f.Kinds == nil && f.Name == "" && f.Namespace == "" && f.Objects == nil && rank(f.Level) == 0
}

// counts reports whether lines have to be filtered to find where the last Tail
// of them begin: the kubelet counts before.
func (o Options) counts() bool { return o.Tail > 0 && !o.Filter.all() }

// collect keeps the last Tail entries that the filter lets through. It reads a
// window from the end of the log, and a wider one as long as that has too few.
func (h *head) collect(ctx context.Context, o Options) {
	for window := max(firstWindow, o.Tail); ; window *= wider {
		h.source.restart(window)
		h.backlog, h.dropped = nil, 0
		read, err := h.keepLast(ctx, o)
		if !errors.Is(err, io.EOF) || int64(len(h.backlog)) == o.Tail || h.dropped > 0 || read < window {
			h.end = err
			break
		}
	}
	// What comes from now on is not bounded.
	h.source.options.Tail = -1
	if h.dropped > 0 && int64(len(h.backlog)) < o.Tail {
		o.Warn("pod %s/%s: of the last %d lines only %d are shown: the others take too much memory",
			h.source.pod.Namespace, h.source.pod.Name, o.Tail, len(h.backlog))
	}
}

// keepLast reads the log to its end, and returns how many lines it has read.
func (h *head) keepLast(ctx context.Context, o Options) (read int64, err error) {
	size := 0
	for {
		l, err := h.source.read(ctx)
		if err != nil {
			return read, err
		}
		read++
		e := h.source.entry(l)
		if !o.Filter.Shows(&e) {
			continue
		}
		e.text = bytes.Clone(e.text)
		h.backlog, size = append(h.backlog, e), size+len(e.text)
		for int64(len(h.backlog)) > o.Tail || size > backlogBytes && len(h.backlog) > 1 {
			if int64(len(h.backlog)) <= o.Tail {
				h.dropped++
			}
			size -= len(h.backlog[0].text)
			h.backlog[0] = Entry{} // the slice keeps its beginning until it grows
			h.backlog = h.backlog[1:]
		}
	}
}

// restart makes the source begin so many lines before the end of its log.
func (s *source) restart(window int64) {
	s.close()
	s.seen, s.last, s.plain = newSeen(), time.Time{}, ""
	s.options.Tail = window
}
