package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build/charts"
)

// chartLayer is the media type of the layer of a chart that Helm pushes.
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// pulledChart is the digest of a chart, and the part that is appended to its version.
type pulledChart struct{ digest, appended string }

// pull fetches a chart from a registry. A chart that is rendered again is not requested again, so that
// both renderings have the same chart, and a chart whose digest is in the cache is not fetched.
func (r *Renderer) pull(ctx context.Context, from charts.Chart) (packed []byte, appended string, err error) {
	encoded, err := json.Marshal(from)
	if err != nil {
		return nil, "", err
	}
	r.mu.Lock()
	known, again := r.pulled[string(encoded)]
	r.mu.Unlock()
	if packed := r.cached(known.digest); again && packed != nil {
		return packed, known.appended, nil
	}
	var digest string
	if packed, digest, appended, err = r.request(ctx, from); err != nil {
		return nil, "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pulled == nil {
		r.pulled = map[string]pulledChart{}
	}
	r.pulled[string(encoded)] = pulledChart{digest, appended}
	return packed, appended, nil
}

// request requests a chart from a registry, and fetches it unless it is in the cache.
func (r *Renderer) request(ctx context.Context, from charts.Chart) (packed []byte, hex, appended string, err error) {
	address := strings.TrimSuffix(strings.TrimPrefix(from.URL, "oci://"), "/")
	if from.Name != "" {
		address += "/" + from.Name
	}
	transport, err := r.transport(from.Access)
	if err != nil {
		return nil, "", "", err
	}
	options := registryOptions(ctx, from.Access, transport)
	reference, err := referenceOf(address, from, append(slices.Clone(options), remote.WithTransport(registry.LimitTags(transport))))
	if err != nil {
		return nil, "", "", err
	}
	image, err := remote.Image(reference, options...)
	if err != nil {
		return nil, "", "", fmt.Errorf("fetching chart oci://%s: %w", address, err)
	}
	if appended = from.Build; from.BuildByDigest {
		manifest, err := image.Digest()
		if err != nil {
			return nil, "", "", fmt.Errorf("reading chart oci://%s: %w", address, err)
		}
		appended = charts.VersionMetadata(manifest.String())
	}
	layer, err := layerOf(image)
	if err != nil {
		return nil, "", "", fmt.Errorf("reading chart oci://%s: %w", address, err)
	}
	digest, err := layer.Digest()
	if err != nil {
		return nil, "", "", fmt.Errorf("reading chart oci://%s: %w", address, err)
	}
	if packed := r.cached(digest.Hex); packed != nil {
		return packed, digest.Hex, appended, nil
	}
	packed, err = readLayer(layer)
	if err != nil {
		return nil, "", "", fmt.Errorf("fetching chart oci://%s: %w", address, err)
	}
	return packed, digest.Hex, appended, r.keep(packed)
}

func registryOptions(ctx context.Context, access charts.Access, transport http.RoundTripper) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(transport)}
	if access.Username != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: access.Username, Password: access.Password}))
	} else {
		options = append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain)) // use the credentials of docker login
	}
	return options
}

// referenceOf returns a reference by digest, by tag, or by the newest tag in a version range.
func referenceOf(address string, from charts.Chart, options []remote.Option) (name.Reference, error) {
	var strict []name.Option
	if from.Access.Insecure {
		strict = append(strict, name.Insecure)
	}
	repository, err := name.NewRepository(address, strict...)
	if err != nil {
		return nil, fmt.Errorf("invalid URL of chart oci://%s: %w", address, err)
	}
	switch {
	case from.Digest != "":
		return repository.Digest(from.Digest), nil
	case from.Tag != "":
		return repository.Tag(from.Tag), nil
	}
	tags, err := remote.List(repository, options...)
	if err != nil {
		return nil, fmt.Errorf("listing the versions of chart oci://%s: %w", address, err)
	}
	for i := range tags {
		tags[i] = strings.ReplaceAll(tags[i], "_", "+") // a tag cannot contain a plus sign
	}
	version, err := charts.Newest(tags, from.Version)
	if err != nil {
		return nil, fmt.Errorf("chart oci://%s: %w", address, err)
	}
	return repository.Tag(strings.ReplaceAll(version, "+", "_")), nil
}

// layerOf returns the layer with the media type of Helm charts, or the first layer.
func layerOf(image v1.Image) (v1.Layer, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		if kind, err := layer.MediaType(); err == nil && string(kind) == chartLayer {
			return layer, nil
		}
	}
	if len(layers) == 0 {
		return nil, errors.New("the artifact has no layers")
	}
	return layers[0], nil
}

// readLayer reads a layer. The library verifies its digest at the end of the layer.
func readLayer(layer v1.Layer) (_ []byte, err error) {
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return budget.ReadAll(content, "", "the chart", chartMax)
}
