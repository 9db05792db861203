package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/web"
)

// attempts is the maximum number of consecutive streams that break without a new line before a log
// fails, unless it is followed.
const attempts = 5

// pause is the time between attempts to reopen a stream.
const pause = 200 * time.Millisecond

// source is the log of one container.
type source struct {
	client  *kube.Client
	options Options
	pod     Pod
	seen    *seen
	stream  *lines
	last    time.Time
	// plain is the level of the last text line, or "" after a JSON line.
	plain string
	// follows reports whether the stream continues with new lines.
	follows bool
}

func newSource(client *kube.Client, pod Pod, options Options) *source {
	return &source{client: client, pod: pod, options: options, seen: newSeen()}
}

// open opens the log after the last line that was read, or at the start that the options set.
func (s *source) open(ctx context.Context, follow, previous bool) error {
	s.close()
	l := kube.LogStream{
		Namespace: s.pod.Namespace, Pod: s.pod.Name, Container: s.pod.Container,
		Follow: follow, Previous: previous, Since: s.seen.since(), Tail: -1,
	}
	if l.Since.IsZero() {
		l.Since, l.SinceSeconds, l.Tail = s.options.SinceTime, s.options.sinceSeconds(), s.options.Tail
	}
	body, err := s.client.Pods().Stream(ctx, l)
	if err != nil {
		return fmt.Errorf("reading the log of pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
	s.seen.reopened()
	s.stream, s.follows = newLines(body), follow
	return nil
}

func (s *source) close() {
	if s.stream != nil {
		_ = s.stream.from.Close()
		s.stream = nil
	}
}

// next returns the next line that is not a repetition. Its text is valid until the next call.
func (s *source) next() (line, error) {
	for {
		l, err := s.stream.next()
		if err != nil {
			return line{}, err
		}
		if l.cut && s.follows {
			return line{}, io.EOF // the next stream repeats it
		}
		if l.at.IsZero() {
			l.at = s.last
		}
		s.last = l.at
		if s.seen.fresh(l) {
			return l, nil
		}
	}
}

// read is like next for a log that is not followed, but reopens a broken stream.
func (s *source) read(ctx context.Context) (line, error) {
	for failed := 0; ; {
		var l line
		err := error(nil)
		if s.stream == nil {
			err = s.open(ctx, false, false)
		}
		if err == nil {
			if l, err = s.next(); err == nil || errors.Is(err, io.EOF) {
				return l, err
			}
			s.close()
		}
		if failed++; failed == attempts || ctx.Err() != nil || final(err) {
			return line{}, err
		}
		if err := web.Sleep(ctx, pause); err != nil {
			return line{}, err
		}
	}
}

// final reports whether a retry would return the same error.
func final(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) &&
		!apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err)
}
