package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

const (
	// firstWindow is the number of lines at the end of a log that are read first to find those that
	// match the filter. wider is the factor by which the window grows while it contains too few.
	firstWindow = 1000
	wider       = 10
	// backlogBytes is the maximum size of the lines that are kept of one log.
	backlogBytes = 8 << 20
)

// all reports whether the filter matches every line.
func (f Filter) all() bool {
	return f.Kinds == nil && f.Name == "" && f.Namespace == "" && f.Objects == nil && rank(f.Level) == 0
}

// counts reports whether lines must be filtered before the last Tail of them are selected.
// Otherwise the kubelet selects them.
func (o Options) counts() bool { return o.Tail > 0 && !o.Filter.all() }

// collect keeps the last Tail entries that match the filter. It reads a window at the end of the
// log, and a wider one while there are too few.
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
	// Later lines are not limited.
	h.source.options.Tail = -1
	if h.dropped > 0 && int64(len(h.backlog)) < o.Tail {
		o.Warn("pod %s/%s: showing %[4]d of the last %[3]d lines: the others exceed the memory limit",
			h.source.pod.Namespace, h.source.pod.Label, o.Tail, len(h.backlog))
	}
}

// keepLast reads the log to its end, and returns the number of lines.
func (h *head) keepLast(ctx context.Context, o Options) (read int64, err error) {
	size := 0
	for {
		l, err := h.source.read(ctx)
		if err != nil {
			return read, err
		}
		read++
		e := h.source.entry(l)
		if !o.Filter.Matches(&e) {
			continue
		}
		e.text = bytes.Clone(e.text)
		h.backlog, size = append(h.backlog, e), size+len(e.text)
		for int64(len(h.backlog)) > o.Tail || size > backlogBytes && len(h.backlog) > 1 {
			if int64(len(h.backlog)) <= o.Tail {
				h.dropped++
			}
			size -= len(h.backlog[0].text)
			h.backlog[0] = Entry{} // release the memory of the entry
			h.backlog = h.backlog[1:]
		}
	}
}

// restart sets the source to the given number of lines before the end of its log.
func (s *source) restart(window int64) {
	s.close()
	s.seen, s.last, s.plain = newSeen(), time.Time{}, ""
	s.options.Tail = window
}
