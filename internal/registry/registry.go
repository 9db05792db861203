// Package registry reads artifacts of Flux out of OCI registries.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// contentMedia is the media type of the layer with the files.
const contentMedia = "application/vnd.cncf.flux.content.v1.tar+gzip"

// sizeMax bounds what is read of a layer.
const sizeMax = 512 << 20

// Access says how a registry is spoken to.
type Access struct {
	// Credentials are user:password, or a token; without them, what docker
	// login has left is used.
	Credentials string
	// Provider is a cloud whose credential helper is asked: aws, azure, gcp.
	Provider string
	// Insecure allows plain HTTP.
	Insecure bool
	// Transport is nil for the usual one.
	Transport http.RoundTripper
}

// helpers are the programs by which clouds hand out credentials for their
// registries, as docker uses them: their SDKs would be in every start of flux.
var helpers = map[string]string{"aws": "ecr-login", "azure": "acr-env", "gcp": "gcr"}

// Pull returns the archive of files of the artifact at an address oci://….
func Pull(ctx context.Context, address string, access Access) ([]byte, error) {
	rest, ok := strings.CutPrefix(address, "oci://")
	if !ok {
		return nil, fmt.Errorf("the address %q does not begin with oci://", address)
	}
	var options []name.Option
	if access.Insecure {
		options = append(options, name.Insecure)
	}
	reference, err := name.ParseReference(rest, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the address %s: %w", address, err)
	}
	keys, err := access.keychain(ctx)
	if err != nil {
		return nil, err
	}
	asked := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keys)}
	if access.Transport != nil {
		asked = append(asked, remote.WithTransport(access.Transport))
	}
	image, err := remote.Image(reference, asked...)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", address, err)
	}
	content, err := contentOf(image)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", address, err)
	}
	return content, nil
}

// contentOf reads the layer of Flux, or the first where none is marked so. The
// library compares its digest at the end.
func contentOf(image v1.Image) (content []byte, err error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) == 0 {
		return nil, errors.New("there is no layer in it")
	}
	chosen := layers[0]
	for _, layer := range layers {
		if media, err := layer.MediaType(); err == nil && string(media) == contentMedia {
			chosen = layer
			break
		}
	}
	reader, err := chosen.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	content, err = io.ReadAll(io.LimitReader(reader, sizeMax+1))
	if err == nil && len(content) > sizeMax {
		err = fmt.Errorf("it is larger than %d MiB", sizeMax>>20)
	}
	return content, err
}

func (a Access) keychain(ctx context.Context) (authn.Keychain, error) {
	if a.Credentials != "" {
		user, password, both := strings.Cut(a.Credentials, ":")
		if !both {
			return fixed{&authn.Bearer{Token: a.Credentials}}, nil
		}
		return fixed{&authn.Basic{Username: user, Password: password}}, nil
	}
	if a.Provider == "" || a.Provider == "generic" {
		return authn.DefaultKeychain, nil
	}
	helper, ok := helpers[a.Provider]
	if !ok {
		return nil, fmt.Errorf("provider %q is not known", a.Provider)
	}
	program, err := exec.LookPath("docker-credential-" + helper)
	if err != nil {
		return nil, fmt.Errorf("provider %s needs the program docker-credential-%s on PATH", a.Provider, helper)
	}
	return authn.NewKeychainFromHelper(cloud{ctx, program}), nil
}

// fixed gives every registry the same credentials.
type fixed struct{ authn.Authenticator }

// Resolve implements authn.Keychain.
func (f fixed) Resolve(authn.Resource) (authn.Authenticator, error) { return f.Authenticator, nil }
