// Package record writes what the commands that read a cluster look at to a recording: Flux objects,
// the objects in their inventories, workloads, events, and the logs of controllers.
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// Recorder records a cluster. It only reads, and reads no content of Secrets and ConfigMaps.
type Recorder struct {
	// Client is the client for the cluster.
	Client *kube.Client
	// Home is the namespace of the controllers, Namespace the recorded one besides, "" for all.
	Home, Namespace string
	// Now is the time of the recording, Flux the version of this program.
	Now  time.Time
	Flux string
	// Lines is the maximum number of recent log lines of a container.
	Lines int
	// Reading is called before each kind of object is read, Missed for what cannot be read.
	Reading func(what string)
	Missed  func(what string, err error)
}

// run is the state of one recording.
type run struct {
	Recorder
	out    *recording.Writer
	masker recording.Masker
	// served are the resources of the cluster, nil if discovery failed.
	served map[schema.GroupVersionKind]kube.Resource
	// applied are the objects in inventories and the Secrets that Flux objects refer to.
	applied map[kube.Resource]map[string]bool
	// whole are the resources of which all objects are recorded.
	whole map[schema.GroupResource]bool
	logs  []container
	// searched are the sources in whose artifacts the diagnosis looks for rejected objects, and
	// artifacts those of all sources.
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

// namespaces returns the namespaces to list, "" for all at once.
func (r Recorder) namespaces() []string {
	if r.Namespace == "" || r.Namespace == r.Home {
		return []string{r.Namespace}
	}
	return []string{r.Home, r.Namespace}
}

// documents records the version of the cluster and its resource types.
func (s *run) documents(ctx context.Context) error {
	s.Reading("the API of the cluster")
	read := map[string]func(context.Context, string) ([]byte, error){
		"/version": s.Client.Raw, "/api": s.Client.Discovery().Aggregated, "/apis": s.Client.Discovery().Aggregated,
	}
	s.served = map[schema.GroupVersionKind]kube.Resource{}
	for _, path := range []string{"/version", "/api", "/apis"} {
		body, err := read[path](ctx, path)
		d := recording.Document{Path: path, Body: body}
		if err == nil && path != "/version" {
			err = s.discover(body)
		}
		if err != nil {
			s.served = nil
			if d.Error, err = s.missed(path, err); err != nil {
				return err
			}
			d.Body = nil
		}
		if err := s.out.Write(recording.Line{Document: &d}); err != nil {
			return err
		}
	}
	return nil
}

func (s *run) discover(body []byte) error {
	groups, err := kube.ResourceTypes(body)
	if err != nil || s.served == nil {
		return err
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			for kind, r := range kube.Applicable(group.Name, version) {
				s.served[schema.GroupVersionKind{Group: group.Name, Version: version.Version, Kind: kind}] = r
			}
		}
	}
	return nil
}

// missed reports what could not be read and returns the response to record. It returns an error if
// the server cannot be reached or the recording is interrupted.
func (s *run) missed(what string, err error) (*metav1.Status, error) {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return nil, fmt.Errorf("recording %s: %w", what, err)
	}
	status := response.Status()
	status.Message = s.masker.Text(status.Message)
	status.Details = nil
	s.out.Unknown(what + ": " + status.Message)
	s.Missed(what, err)
	return &status, nil
}

// all records all objects of a resource. visit sees the objects before they are masked.
func (s *run) all(ctx context.Context, r kube.Resource, without []string, visit func(controllers.Object)) error {
	s.Reading(r.Resource)
	s.whole[r.GroupResource()] = true
	for _, namespace := range s.scopes(r) {
		line := listOf(r, namespace)
		version, err := s.Client.List(ctx, r, kube.Selection{Namespace: namespace, Without: without}, func(o controllers.Object) error {
			visit(o)
			return s.write(r, o)
		})
		if err := s.end(line, version, err); err != nil {
			return err
		}
	}
	return nil
}

// scopes returns the namespaces in which a resource is listed.
func (s *run) scopes(r kube.Resource) []string {
	if r.ClusterScoped {
		return []string{""}
	}
	return s.namespaces()
}

func (s *run) write(r kube.Resource, o controllers.Object) error {
	s.masker.Object(r.Group, o)
	return s.out.Write(recording.Line{Object: o})
}

func listOf(r kube.Resource, namespace string) *recording.List {
	return &recording.List{Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind, Namespace: namespace}
}

// end writes the line after the objects of a list.
func (s *run) end(line *recording.List, version string, err error) error {
	line.ResourceVersion = version
	if err != nil {
		what := line.Resource
		if line.Namespace != "" {
			what += " in namespace " + line.Namespace
		}
		if line.Error, err = s.missed(what, err); err != nil {
			return err
		}
	}
	return s.out.Write(recording.Line{List: line})
}

// flux records the Flux objects.
func (s *run) flux(ctx context.Context) error {
	installed := false
	for _, k := range controllers.Kinds {
		s.Reading(k.Resource)
		s.whole[schema.GroupResource{Group: k.Group, Resource: k.Resource}] = true
		for _, namespace := range s.namespaces() {
			line, version := listOf(kube.Of(k), namespace), ""
			err := s.Client.WithServedVersion(ctx, k, func(r kube.Resource) (err error) {
				line.Version = r.Version
				version, err = s.Client.List(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
					s.want(k, o)
					return s.write(r, o)
				})
				return err
			})
			var absent *kube.MissingKindError
			if errors.As(err, &absent) {
				continue // discovery has the answer
			}
			installed = true
			if err := s.end(line, version, err); err != nil {
				return err
			}
		}
	}
	if !installed {
		s.out.Unknown("Flux resources: " + errNotInstalled.Error())
		s.Missed("Flux resources", errNotInstalled)
	}
	return nil
}

// errNotInstalled is reported for a cluster that serves no kind of Flux.
var errNotInstalled = errors.New("no CustomResourceDefinition of Flux is installed")

// want selects the objects that a Flux object applies, the Secrets that it refers to, and the artifact
// that has the file of an object which the API server rejects.
func (s *run) want(k controllers.Kind, o controllers.Object) {
	if source, ok := diagnose.Searched(k, o); ok {
		s.searched[source] = true
	}
	if a, ok := artifact.Of(o); ok {
		s.artifacts[k.IDOf(o)] = a
	}
	for _, e := range controllers.Inventory(o) {
		if r, ok := s.resource(e.GroupVersionKind()); ok {
			s.add(r, e.ID.Namespace, e.ID.Name)
		}
	}
	for _, ref := range controllers.SecretsOf(o) {
		s.add(secrets(), controllers.Namespace(o), ref.Name)
	}
}

func (s *run) add(r kube.Resource, namespace, name string) {
	if s.applied[r] == nil {
		s.applied[r] = map[string]bool{}
	}
	if s.Namespace == "" || namespace == "" || slices.Contains(s.namespaces(), namespace) {
		s.applied[r][namespace+"/"+name] = true
	}
}

// resource returns the resource of a kind in the given or another served version, false if the
// cluster does not serve the kind.
func (s *run) resource(gvk schema.GroupVersionKind) (kube.Resource, bool) {
	if r, ok := s.served[gvk]; ok || s.served == nil {
		if !ok {
			r = kube.ResourceFor(gvk)
		}
		return r, true
	}
	var versions []string
	for other := range s.served {
		if other.GroupKind() == gvk.GroupKind() {
			versions = append(versions, other.Version)
		}
	}
	if len(versions) == 0 {
		return kube.Resource{}, false
	}
	return s.served[gvk.GroupKind().WithVersion(slices.Min(versions))], true
}
