package kube

import (
	"context"
	"strconv"
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
	return answer(ctx, c.raw.Get().AbsPath(pods.path(l.Namespace, l.Pod), "log").
		Param("container", l.Container).
		Param("previous", strconv.FormatBool(l.Previous)).
		Param("tailLines", strconv.Itoa(l.Lines)).
		Param("limitBytes", strconv.Itoa(l.Lines*8192)))
}
