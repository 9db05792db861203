// Package recording writes and reads recordings of clusters: each is a file without secrets that contains the cluster
// state that read-only commands require. docs/recording.md describes the format.
package recording

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Format identifies the format and its version. formatV1 is the format without artifact indexes.
const (
	Format   = "flux-recording/v2"
	formatV1 = "flux-recording/v1"
)

// Line is a line of the file. Exactly one field is set.
type Line struct {
	Header   *Header            `json:"header,omitempty"`
	Document *Document          `json:"document,omitempty"`
	Object   controllers.Object `json:"object,omitempty"`
	List     *List              `json:"list,omitempty"`
	Log      *Log               `json:"log,omitempty"`
	End      *End               `json:"end,omitempty"`
}

// Header is the first line.
type Header struct {
	Format string `json:"format"`
	// Time is the start time of the recording.
	Time time.Time `json:"time"`
	// Flux is the version of the program that wrote the file.
	Flux string `json:"flux"`
	// Home is the namespace of the controllers.
	Home string `json:"home"`
	// Namespaces lists the recorded namespaces; it is empty for all namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Document is the response to a request other than a list or log request.
type Document struct {
	Path  string          `json:"path"`
	Body  json.RawMessage `json:"body,omitempty"`
	Error *metav1.Status  `json:"error,omitempty"`
}

// IndexPath returns the path of the document with the Index of a source's artifact. API servers
// do not serve this path.
func IndexPath(source controllers.ID) string {
	return "/flux-recording/artifacts/" + source.Kind + "/" + source.Namespace + "/" + source.Name
}

// Index is the body of the document for an artifact. It lists the manifests of the artifact without their contents.
type Index struct {
	Manifests []Manifest `json:"manifests"`
}

// Manifest identifies an object and its file in an artifact.
type Manifest struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	File       string `json:"file"`
}

// List describes the objects in the lines between the previous list and this one.
type List struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	// Namespace is "" for all namespaces and for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Part is true if the list contains only the objects that match one of Selectors and objects that were requested
	// by name. Absent lists the requested objects that do not exist, as namespace/name.
	Part      bool     `json:"part,omitempty"`
	Selectors []string `json:"selectors,omitempty"`
	Absent    []string `json:"absent,omitempty"`
	// MetadataOnly is true if only the metadata was read.
	MetadataOnly bool `json:"metadataOnly,omitempty"`
	// ResourceVersion is the resource version of the list.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Error is the response if the objects could not be read.
	Error *metav1.Status `json:"error,omitempty"`
}

// Log is the end of a container's log.
type Log struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Previous  bool   `json:"previous,omitempty"`
	// Cut is true if earlier lines of the log were omitted.
	Cut bool `json:"cut,omitempty"`
	// Text contains the log lines, each with a timestamp.
	Text  string         `json:"text,omitempty"`
	Error *metav1.Status `json:"error,omitempty"`
}

// End is the last line.
type End struct {
	Objects int `json:"objects"`
	// Unknown describes the data that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}
