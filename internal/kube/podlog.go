package kube

import (
	"context"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube/transport"
)

// PodLog selects a part of a log.
type PodLog struct {
	Namespace, Pod, Container string
	// Previous selects the previous run of the container.
	Previous bool
	// Lines is the maximum number of recent lines. It must be set, because the log is read into memory.
	Lines int
}

// Pods reads pod logs and connects to pod ports.
type Pods struct{ c *Client }

// Pods returns the client for pods.
func (c *Client) Pods() Pods { return Pods{c} }

func podResource() Resource { return ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) }

// Log returns the end of a container's log.
func (p Pods) Log(ctx context.Context, l PodLog) ([]byte, error) {
	body, err := transport.Open(ctx, podResource().locate(p.c.raw.Get(), l.Namespace, l.Pod).SubResource("log").
		Param("container", l.Container).
		Param("previous", strconv.FormatBool(l.Previous)).
		Param("tailLines", strconv.Itoa(l.Lines)).
		Param("limitBytes", strconv.Itoa(l.Lines*8192)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was read
	return budget.ReadAll(body, l.Namespace+"/"+l.Pod, "the log of container "+l.Container, transport.MaxResponse)
}

// LogStream selects the part of a log to stream.
type LogStream struct {
	Namespace, Pod, Container string
	// Follow streams new lines, Previous selects the previous run of the container.
	Follow, Previous bool
	// Since omits lines older than a time, with a precision of one second. It takes precedence over SinceSeconds.
	Since        time.Time
	SinceSeconds int64
	// Tail is the number of recent lines, or -1 for all lines.
	Tail int64
}

// Stream opens the log of a container. Each line starts with its timestamp.
func (p Pods) Stream(ctx context.Context, l LogStream) (io.ReadCloser, error) {
	streams, err := p.c.apart()
	if err != nil {
		return nil, err
	}
	request := podResource().locate(streams.Get(), l.Namespace, l.Pod).SubResource("log").
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
	return transport.Open(ctx, request)
}
