// Package record records the cluster state that read-only commands need: Flux objects, the objects
// in their inventories, workloads, events, and the logs of controllers.
package record

import (
	"context"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Recorder records a cluster. It is read-only, and does not read the content of Secrets and ConfigMaps.
type Recorder struct {
	// Client is the client for the cluster.
	Client *kube.Client
	// Home is the controllers' namespace, and Namespace the other namespace to record, "" for all.
	Home, Namespace string
	// Now is the time of the recording, and Flux the version of this program.
	Now  time.Time
	Flux string
	// Lines is the maximum number of recent log lines of a container.
	Lines int
	// Reading is called before each kind of object is read, Missed after a read that failed.
	Reading func(what string)
	Missed  func(what string, err error)
}

// run is the state of one recording.
type run struct {
	Recorder
	out    *recording.Writer
	masker recording.Masker
	// served lists the resources of the cluster, nil if discovery failed.
	served map[schema.GroupVersionKind]kube.Resource
	// applied holds the objects in inventories and the Secrets that Flux objects refer to.
	applied map[kube.Resource]map[string]bool
	// whole lists the resources whose objects are all recorded.
	whole map[schema.GroupResource]bool
	logs  []container
	// searched lists the sources whose artifacts the diagnosis searches for rejected objects.
	// artifacts holds the artifacts of all sources.
	searched  map[controllers.ID]bool
	artifacts map[controllers.ID]artifact.Artifact
}

// Write writes a recording of the cluster.
func (r Recorder) Write(ctx context.Context, w io.Writer) (recording.End, error) {
	h := recording.Header{Time: r.Now, Flux: r.Flux, Home: r.Home}
	if r.Namespace != "" {
		h.Namespaces = r.namespaces()
	}
	out, err := recording.NewWriter(w, h)
	if err != nil {
		return recording.End{}, err
	}
	s := &run{
		Recorder: r, out: out, applied: map[kube.Resource]map[string]bool{}, whole: map[schema.GroupResource]bool{},
		searched: map[controllers.ID]bool{}, artifacts: map[controllers.ID]artifact.Artifact{},
	}
	for _, step := range []func(context.Context) error{s.documents, s.flux, s.indexes, s.builtIn, s.relatives, s.inventories, s.readLogs} {
		if err := step(ctx); err != nil {
			return recording.End{}, err
		}
	}
	return out.Close()
}
