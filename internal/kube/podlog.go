package kube

import (
	"context"
	"io"
	"strconv"
	"time"
)

// PodLog says which part of which log is meant.
type PodLog struct {
	Namespace, Pod, Container string
	// Previous means the container's run before the present one.
	Previous bool
	// Lines is how many lines from the end are read; it has to be set, so that
	// a log without end does not end up in memory.
	Lines int
}

// PodLog returns the end of a container's log.
func (c *Client) PodLog(ctx context.Context, l PodLog) ([]byte, error) {
	pods := Resource{ClusterScoped: false}
	pods.Version, pods.Resource = "v1", "pods"
	return answer(ctx, pods.locate(c.raw.Get(), l.Namespace, l.Pod).SubResource("log").
		Param("container", l.Container).
		Param("previous", strconv.FormatBool(l.Previous)).
		Param("tailLines", strconv.Itoa(l.Lines)).
		Param("limitBytes", strconv.Itoa(l.Lines*8192)))
}

// LogStream says which part of which log is read line by line.
type LogStream struct {
	Namespace, Pod, Container string
	// Follow goes on with what the container prints, Previous reads the run
	// before the present one.
	Follow, Previous bool
	// Since leaves out what is older, to the second; it stands above SinceSeconds.
	Since        time.Time
	SinceSeconds int64
	// Tail is how many lines from the end are read, -1 for all.
	Tail int64
}

// StreamLog opens a container's log. Each line begins with the time at which
// the container printed it.
func (c *Client) StreamLog(ctx context.Context, l LogStream) (io.ReadCloser, error) {
	pods := Resource{}
	pods.Version, pods.Resource = "v1", "pods"
	streams, err := c.apart()
	if err != nil {
		return nil, err
	}
	request := pods.locate(streams.Get(), l.Namespace, l.Pod).SubResource("log").
		Param("container", l.Container).
		Param("timestamps", "true")
	if l.Follow {
		request = request.Param("follow", "true")
	}
	if l.Previous {
		request = request.Param("previous", "true")
	}
	switch {
	case !l.Since.IsZero():
		request = request.Param("sinceTime", l.Since.UTC().Format(time.RFC3339))
	case l.SinceSeconds > 0:
		request = request.Param("sinceSeconds", strconv.FormatInt(l.SinceSeconds, 10))
	}
	if l.Tail >= 0 {
		request = request.Param("tailLines", strconv.FormatInt(l.Tail, 10))
	}
	return request.Stream(ctx)
}
