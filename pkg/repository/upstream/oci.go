package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// RegistryReference returns the artifact reference in the spec of an
// OCIRepository.
func RegistryReference(repository *unstructured.Unstructured) registry.Wanted {
	field := func(path string) string { return controllers.Path{"spec." + path}.String(repository.Object) }
	return registry.Wanted{
		Tag: field("ref.tag"), Digest: field("ref.digest"), SemVer: field("ref.semver"), Filter: field("ref.semverFilter"),
		MediaType: field("layerSelector.mediaType"),
	}
}

// AtRevision replaces the reference with a tag, a digest or a Flux revision
// (tag@sha256:…).
func AtRevision(wanted registry.Wanted, revision string) registry.Wanted {
	wanted.Tag, wanted.Digest, wanted.SemVer, wanted.Filter = revision, "", "", ""
	if i := strings.LastIndex(revision, "sha256:"); i == 0 || i > 0 && revision[i-1] == '@' {
		wanted.Digest = revision[i:]
	}
	return wanted
}

// Credentials finds the credentials of sources.
type Credentials struct {
	Lookup build.Lookup
	// Missing decides on Secrets that cannot be read, as in charts.Options.
	Missing func(controllers.ID, error) bool
	Login   charts.Login
	// Restrict returns a transport that rejects hosts. A nil Restrict allows all hosts.
	Restrict func(*http.Transport) http.RoundTripper
}

// OCITree pulls an artifact and filters its files like source-controller. If the source has no
// credentials, it uses the credentials of docker login.
func OCITree(ctx context.Context, repository *unstructured.Unstructured, wanted registry.Wanted, credentials Credentials) (StoredSource, error) {
	access, err := OCIAccess(ctx, repository, credentials)
	if err != nil {
		return StoredSource{}, err
	}
	found, layer, err := registry.Select(ctx, controllers.Path{"spec.url"}.String(repository.Object), wanted, access)
	if err != nil {
		return StoredSource{}, ExplainOCI(ctx, access, repository, err)
	}
	revision := found.Digest
	if found.Tag != "" {
		revision = found.Tag + "@" + found.Digest
	}
	tree, err := sourcetree.Archive(bytes.NewReader(layer))
	if err != nil {
		return StoredSource{}, fmt.Errorf("reading the layer of %s in %s: %w", revision, controllers.IDOf(repository.Object), err)
	}
	if (controllers.Path{"spec.layerSelector.operation"}).String(repository.Object) != "copy" {
		// The copy operation keeps the layer without applying ignore rules.
		tree, err = sourcetree.Select(ctx, []sourcetree.Part{{Tree: tree}}, sourcetree.IgnoreOf(repository))
	}
	return StoredSource{tree, revision}, err
}

// OCIAccess returns the connection settings and credentials for the registry
// of an OCIRepository.
func OCIAccess(ctx context.Context, repository *unstructured.Unstructured, credentials Credentials) (registry.Access, error) {
	from, err := charts.AccessOf(ctx, repository, charts.Options{Lookup: credentials.Lookup, Missing: credentials.Missing, Login: credentials.Login})
	if err != nil {
		return registry.Access{}, err
	}
	access := registry.Access{Insecure: from.Insecure, CA: from.CA, Cert: from.Cert, Key: from.Key, Restrict: credentials.Restrict}
	if from.Username+from.Password != "" {
		access.Credentials = from.Username + ":" + from.Password
	}
	return access, nil
}

// ExplainOCI adds a remedy to a registry error.
func ExplainOCI(ctx context.Context, access registry.Access, repository *unstructured.Unstructured, err error) error {
	var answered *transport.Error
	var none *registry.NoMatchError
	if errors.As(err, &none) {
		return hint.Errorf("list the available tags: flux list artifact "+hint.Quote(controllers.Path{"spec.url"}.String(repository.Object)), "%w", err)
	}
	if errors.As(err, &answered) && answered.StatusCode == http.StatusNotFound {
		return hint.Errorf("list the available tags: flux list artifact "+hint.Quote(controllers.Path{"spec.url"}.String(repository.Object)), "revision not found: %w", err)
	}
	provider := controllers.Path{"spec.provider"}.String(repository.Object)
	if (controllers.Path{"spec.secretRef.name"}).String(repository.Object) == "" && errors.As(err, &answered) && registry.Rejected(answered) && cloud.Known(provider) {
		if access.Credentials == "" {
			return hint.Errorf("set --provider "+provider+" to log in with the identity of the environment", "%w", err)
		}
		access.Provider = provider
	}
	return registry.Explain(ctx, access, err)
}
