package record

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
)

// namespaces returns the namespaces to list, "" for all at once.
func (r Recorder) namespaces() []string {
	if r.Namespace == "" || r.Namespace == r.Home {
		return []string{r.Namespace}
	}
	return []string{r.Home, r.Namespace}
}

// missed reports a failed read and returns the response to record. It returns an error if the
// server cannot be reached or the recording is interrupted.
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
