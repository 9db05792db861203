package oci

import (
	"github.com/fluxkit/flux/internal/registry"
)

// Entry is an artifact in JSON and YAML output.
type Entry struct {
	URL        string `json:"url"`
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Digest     string `json:"digest"`
	Source     string `json:"source,omitempty"`
	Revision   string `json:"revision,omitempty"`
	Created    string `json:"created,omitempty"`
}

// EntryOf returns the entry of an artifact.
func EntryOf(a registry.Artifact) Entry {
	return Entry{
		URL: a.URL(), Repository: a.Repository, Tag: a.Tag, Digest: a.Digest,
		Source: a.Annotations[registry.SourceAnnotation], Revision: a.Annotations[registry.RevisionAnnotation],
		Created: a.Annotations[registry.CreatedAnnotation],
	}
}
