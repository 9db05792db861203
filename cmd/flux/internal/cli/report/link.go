package report

import (
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Vertex is an object of a graph, for JSON.
type Vertex struct {
	controllers.ID
	Ready     string           `json:"ready,omitempty"`
	Message   string           `json:"message,omitempty"`
	Suspended bool             `json:"suspended"`
	Missing   bool             `json:"missing"`
	BlockedBy []controllers.ID `json:"blockedBy,omitempty"`
	// MoreBlockers is set if BlockedBy is incomplete.
	MoreBlockers bool `json:"moreBlockers,omitempty"`
}

// VertexOf returns a vertex for JSON.
func VertexOf(v *tree.Vertex) Vertex {
	return Vertex{v.Object, v.Ready, v.Message, v.Suspended, v.Missing, v.BlockedBy, v.MoreBlockers}
}

// TimeOrNil returns nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Link is a Flux object between a source and the traced object.
type Link struct {
	controllers.ID
	// Error is the error from reading the object. The other fields are empty then.
	Error string            `json:"error,omitempty"`
	Spec  map[string]string `json:"spec,omitempty"`
	// Revision is the last applied or fetched revision, Commit its Git commit.
	Revision string `json:"revision,omitempty"`
	Commit   string `json:"commit,omitempty"`
	// Attempted is the last attempted revision.
	Attempted     string     `json:"attempted,omitempty"`
	Origin        *origins   `json:"origin,omitempty"`
	Suspended     bool       `json:"suspended"`
	Ready         string     `json:"ready,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	Message       string     `json:"message,omitempty"`
	Since         *time.Time `json:"since,omitempty"`
	LastSucceeded *time.Time `json:"lastSucceeded,omitempty"`
}

// origins has the origin of an OCI artifact.
type origins struct {
	Revision string `json:"revision,omitempty"`
	Source   string `json:"source,omitempty"`
}

// LinkOf returns a link for JSON.
func LinkOf(l tree.Link) Link {
	link := Link{ID: l.Object}
	if l.Err != nil {
		link.Error = redact.Text(l.Err.Error())
		return link
	}
	link.Spec = map[string]string{}
	for _, f := range LinkFields {
		if value := f.Path.String(l.Live); value != "" {
			link.Spec[strings.ToLower(strings.ReplaceAll(f.Label, " ", ""))] = redact.URL(value)
		}
	}
	out := l.Outcome()
	link.Revision, link.Commit, link.Attempted = out.Revision, git.ParseRevision(out.Revision).Commit, out.Attempted
	link.Ready, link.Reason, link.Message = out.Status, out.Reason, redact.Text(out.Message)
	link.Since, link.LastSucceeded = TimeOrNil(out.Since), TimeOrNil(out.LastSuccess)
	link.Suspended = l.Kind.Suspension.Is(l.Live)
	from := origins{Origin(l.Live, OriginFields[0].Annotation), redact.Text(Origin(l.Live, OriginFields[1].Annotation))}
	if from != (origins{}) {
		link.Origin = &from
		if link.Commit == "" {
			link.Commit = git.ParseRevision(from.Revision).Commit
		}
	}
	return link
}

// LinkFields are the fields of the spec that are printed before the outcome, in the
// order of Flux 2.9.
var LinkFields = []struct {
	Label string
	Path  controllers.Path
}{
	{"Target", controllers.Path{"spec.targetNamespace"}},
	{"Path", controllers.Path{"spec.path"}},
	{"Chart", controllers.Path{"spec.chart"}},
	{"Version", controllers.Path{"spec.version"}},
	{"URL", controllers.Path{"spec.url"}},
	{"Endpoint", controllers.Path{"spec.endpoint"}},
	{"Bucket Name", controllers.Path{"spec.bucketName"}},
	{"Branch", controllers.Path{"spec.ref.branch"}},
	{"Tag", controllers.Path{"spec.ref.tag"}},
	{"Semver", controllers.Path{"spec.ref.semver"}},
	{"Digest", controllers.Path{"spec.ref.digest"}},
	{"Reference", controllers.Path{"spec.ref.name"}},
	{"Commit", controllers.Path{"spec.ref.commit"}},
}

// OriginFields are the annotations of an OCI artifact with its origin (OCI image
// specification).
var OriginFields = []struct{ Label, Annotation string }{
	{"Origin Revision", "org.opencontainers.image.revision"},
	{"Origin Source", "org.opencontainers.image.source"},
}

// Origin returns an annotation of the artifact of a source.
func Origin(o controllers.Object, annotation string) string {
	v, _ := controllers.Path{"status.artifact.metadata"}.Lookup(o)
	metadata, _ := v.(map[string]any)
	text, _ := metadata[annotation].(string)
	return text
}
