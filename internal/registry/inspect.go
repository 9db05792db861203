package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// Errors of Platforms.
var (
	// ErrNoImage is returned if an image does not exist in the registry.
	ErrNoImage = errors.New("the image does not exist in the registry")
	// ErrInvalidImage is returned for an invalid image reference.
	ErrInvalidImage = errors.New("invalid image reference")
)

// maxDocument is the maximum size of a manifest or an image configuration.
const maxDocument = 4 << 20

// Platforms returns the platforms of a container image, such as linux/amd64, sorted. It returns
// no platforms if neither the manifest nor the configuration declares one.
func Platforms(ctx context.Context, image string, access Access) ([]string, error) {
	reference, err := name.ParseReference(image, access.strictness()...)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrInvalidImage, image)
	}
	options, err := access.options(ctx, reference.Context().Registry)
	if err != nil {
		return nil, err
	}
	through, err := access.transport()
	if err != nil {
		return nil, err
	}
	limits := web.Limits{Response: maxDocument, TooLarge: budget.TooLarge("", "the image manifest", maxDocument)}
	options = append(options, remote.WithTransport(limits.Transport(through)))
	found, err := remote.Get(reference, options...)
	var answered *transport.Error
	if errors.As(err, &answered) && answered.StatusCode == http.StatusNotFound && answered.Request != nil && strings.Contains(answered.Request.URL.Path, "/manifests/") {
		return nil, ErrNoImage
	}
	if err != nil {
		return nil, err
	}
	return platformsOf(found)
}

// platformsOf returns the platforms of an index, or of a single image.
func platformsOf(found *remote.Descriptor) ([]string, error) {
	var all []string
	add := func(p *v1.Platform) {
		if p != nil && p.OS != "" && p.OS != "unknown" { // unknown/unknown is an attestation
			all = append(all, p.String())
		}
	}
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		if err != nil {
			return nil, err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, m := range manifest.Manifests {
			add(m.Platform)
		}
	} else {
		image, err := found.Image()
		if err != nil {
			return nil, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		add(config.Platform())
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
