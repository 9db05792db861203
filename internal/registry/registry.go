// Package registry pushes Flux artifacts to OCI registries, and lists, tags and pulls them.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// contentMedia is the media type of the layer that contains the files.
const contentMedia = "application/vnd.cncf.flux.content.v1.tar+gzip"

// atOnce is the maximum number of concurrent requests to a registry.
const atOnce = 16

// Access holds the credentials and connection settings for a registry.
type Access struct {
	// Credentials is user:password or a token. Without credentials and a provider, the
	// credentials stored by docker login are used.
	Credentials string
	// Provider is the cloud provider for Login. "" and generic select no provider.
	Provider string
	// Login returns the credentials of a provider for a registry host.
	Login func(ctx context.Context, provider, host string) (username, password string, err error)
	// Insecure allows plain HTTP.
	Insecure bool
	// CA is trusted in addition to the system's CA certificates. Cert and Key are a client
	// certificate. All are PEM-encoded.
	CA, Cert, Key []byte
	// Proxy is the proxy for the registry. If it is nil, the proxy settings of the environment apply.
	Proxy *url.URL
	// Restrict returns a transport that rejects requests to some hosts, and Wrap one that observes them. Both may be nil.
	Restrict func(*http.Transport) http.RoundTripper
	Wrap     func(http.RoundTripper) http.RoundTripper
	// Progress is called with the number of bytes sent or received so far and the total number. It may be nil.
	Progress func(done, total int64)
}

// The errors of an Access with a provider.
var (
	// ErrInsecureLogin is returned if the credentials of a provider would be sent without TLS.
	ErrInsecureLogin = errors.New("cloud provider credentials are sent only over TLS")
	// ErrTwoLogins is returned if both credentials and a provider are set.
	ErrTwoLogins = errors.New("credentials and a cloud provider are mutually exclusive")
)

// Scheme is the prefix of artifact addresses.
const Scheme = "oci://"

// Artifact describes an artifact in a registry.
type Artifact struct {
	// Repository is the address without scheme, tag and digest.
	Repository string
	// Tag is "" if the artifact was selected by its digest.
	Tag    string
	Digest string
	// Annotations contains the annotations of the manifest.
	Annotations map[string]string
}

// URL returns the oci:// URL of the artifact by digest.
func (a Artifact) URL() string { return Scheme + a.Repository + "@" + a.Digest }

// name returns the address for errors, with the tag if the artifact was selected by a tag.
func (a Artifact) name() string {
	if a.Tag == "" {
		return a.Repository + "@" + a.Digest
	}
	return a.Repository + ":" + a.Tag
}

// AddressError is returned for an invalid artifact address.
type AddressError struct{ Address string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("the address %q does not begin with oci://", e.Address)
}

// Pull returns the archive of the artifact at an oci:// URL.
func Pull(ctx context.Context, address string, access Access) ([]byte, error) {
	_, content, err := Fetch(ctx, address, access)
	return content, err
}

// Fetch returns the artifact at an oci:// URL and its archive.
func Fetch(ctx context.Context, address string, access Access) (Artifact, []byte, error) {
	found, layer, err := open(ctx, address, access)
	if err != nil {
		return Artifact{}, nil, err
	}
	content, err := compressed(layer, access.Progress)
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("fetching %s: %w", address, err)
	}
	return found, content, nil
}

// Stream is like Fetch but does not hold the archive in memory. The reader verifies the digest at
// its end. Until then, the content must not be trusted.
func Stream(ctx context.Context, address string, access Access) (Artifact, io.ReadCloser, error) {
	found, layer, err := open(ctx, address, access)
	if err != nil {
		return Artifact{}, nil, err
	}
	content, err := layer.Compressed()
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("fetching %s: %w", address, err)
	}
	if size, err := layer.Size(); err == nil && access.Progress != nil {
		return found, budget.Closing(budget.Counted(content, size, access.Progress), content), nil
	}
	return found, content, nil
}

// open reads the manifest of an artifact and returns the layer that contains the files.
func open(ctx context.Context, address string, access Access) (Artifact, v1.Layer, error) {
	reference, options, err := access.reach(ctx, address)
	if err != nil {
		return Artifact{}, nil, err
	}
	found, image, err := manifest(address, reference, options)
	if err != nil {
		return Artifact{}, nil, err
	}
	layer, err := layerOf(image, contentMedia, true)
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("fetching %s: %w", address, err)
	}
	return found, layer, nil
}

// manifest reads the manifest of an artifact. name identifies the artifact in errors.
func manifest(called string, reference name.Reference, options []remote.Option) (Artifact, v1.Image, error) {
	image, err := remote.Image(reference, options...)
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("fetching %s: %w", called, err)
	}
	found, err := describe(reference, image)
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("reading the manifest of %s: %w", called, err)
	}
	return found, image, nil
}

// reach parses an artifact address and returns the options for its registry.
func (a Access) reach(ctx context.Context, address string) (name.Reference, []remote.Option, error) {
	return located(ctx, a, address, name.ParseReference, name.Reference.Context)
}

// repository parses a repository address and returns the options for its registry.
func (a Access) repository(ctx context.Context, address string) (name.Repository, []remote.Option, error) {
	return located(ctx, a, address, name.NewRepository, func(r name.Repository) name.Repository { return r })
}

func located[T any](
	ctx context.Context, a Access, address string, parse func(string, ...name.Option) (T, error), repository func(T) name.Repository,
) (found T, options []remote.Option, err error) {
	rest, ok := strings.CutPrefix(address, Scheme)
	if !ok {
		return found, nil, &AddressError{address}
	}
	if found, err = parse(rest, a.strictness()...); err != nil {
		return found, nil, fmt.Errorf("parsing the address %s: %w", address, err)
	}
	options, err = a.options(ctx, repository(found).Registry)
	return found, options, err
}

func (a Access) strictness() []name.Option {
	if a.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

func (a Access) options(ctx context.Context, registry name.Registry) ([]remote.Option, error) {
	keys, err := a.keychain(ctx, registry)
	if err != nil {
		return nil, err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keys), remote.WithJobs(atOnce)}
	through, err := a.transport()
	return append(options, remote.WithTransport(through)), err
}

// transport returns the transport for a registry.
func (a Access) transport() (http.RoundTripper, error) {
	server := web.Server{Name: "the registry", CA: a.CA, Cert: a.Cert, Key: a.Key, SystemCA: true, Proxy: a.Proxy}
	own, err := server.Transport()
	if err != nil {
		return nil, err
	}
	transport := http.RoundTripper(own)
	switch {
	case a.Restrict != nil:
		transport = a.Restrict(own)
	case len(a.CA)+len(a.Cert)+len(a.Key) == 0 && a.Proxy == nil:
		transport = remote.DefaultTransport // all requests of a command share its connections
	}
	if a.Wrap != nil {
		transport = a.Wrap(transport)
	}
	return transport, nil
}

func describe(reference name.Reference, image v1.Image) (Artifact, error) {
	digest, err := image.Digest()
	if err != nil {
		return Artifact{}, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return Artifact{}, err
	}
	a := Artifact{Repository: reference.Context().Name(), Digest: digest.String(), Annotations: manifest.Annotations}
	if tag, ok := reference.(name.Tag); ok {
		a.Tag = tag.TagStr()
	}
	return a, nil
}

// layerOf returns the first layer with a media type, or else the first layer if orFirst is set.
func layerOf(image v1.Image, wanted string, orFirst bool) (v1.Layer, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) == 0 {
		return nil, errors.New("the artifact has no layers")
	}
	for _, layer := range layers {
		if media, err := layer.MediaType(); err == nil && string(media) == wanted {
			return layer, nil
		}
	}
	if !orFirst {
		return nil, fmt.Errorf("the artifact has no layer with the media type %s", wanted)
	}
	return layers[0], nil
}

// compressed returns a layer in its stored form. The library verifies its digest.
func compressed(layer v1.Layer, progress func(done, total int64)) (content []byte, err error) {
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	from := io.Reader(reader)
	if size, err := layer.Size(); err == nil {
		from = budget.Counted(reader, size, progress)
	}
	return budget.ReadAll(from, "", "the layer", budget.Default().Stored)
}

// keychain returns the credentials for a registry.
func (a Access) keychain(ctx context.Context, registry name.Registry) (authn.Keychain, error) {
	if a.Provider != "" && a.Provider != "generic" {
		return a.login(ctx, registry)
	}
	if a.Credentials == "" {
		return authn.DefaultKeychain, nil
	}
	user, password, both := strings.Cut(a.Credentials, ":")
	if !both {
		return fixed{registry, &authn.Bearer{Token: a.Credentials}}, nil
	}
	return fixed{registry, &authn.Basic{Username: user, Password: password}}, nil
}

// login returns the credentials of the provider for a registry.
func (a Access) login(ctx context.Context, registry name.Registry) (authn.Keychain, error) {
	switch {
	case a.Credentials != "":
		return nil, ErrTwoLogins
	case a.Insecure:
		return nil, ErrInsecureLogin
	}
	user, password, err := a.Login(ctx, a.Provider, registry.RegistryStr())
	if err != nil {
		return nil, err
	}
	return fixed{registry, &authn.Basic{Username: user, Password: password}}, nil
}

// fixed is a keychain with the credentials for a single registry.
type fixed struct {
	registry name.Registry
	authn.Authenticator
}

// Resolve implements authn.Keychain.
func (f fixed) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	if resource.RegistryStr() != f.registry.RegistryStr() {
		return authn.Anonymous, nil
	}
	return f.Authenticator, nil
}
