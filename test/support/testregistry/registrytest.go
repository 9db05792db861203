// Package testregistry runs an in-memory OCI registry for tests.
package testregistry

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry is a running registry.
type Registry struct {
	server *httptest.Server
}

// Start runs an empty registry.
func Start() *Registry {
	return &Registry{httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))}
}

// Close stops it.
func (r *Registry) Close() { r.server.Close() }

// Host is the address of the registry: a loopback host and port.
func (r *Registry) Host() string { return strings.TrimPrefix(r.server.URL, "http://") }

// Layer is a layer with its media type.
type Layer struct {
	Media   string
	Content []byte
}

// PushLayers stores several layers under name:tag.
func (r *Registry) PushLayers(tag string, layers ...Layer) error {
	reference, err := name.ParseReference(r.Host() + "/" + tag)
	if err != nil {
		return err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for _, l := range layers {
		if image, err = mutate.AppendLayers(image, static.NewLayer(l.Content, types.MediaType(l.Media))); err != nil {
			return err
		}
	}
	return remote.Write(reference, image)
}

// Push stores an archive of files as a Flux artifact under name:tag.
func (r *Registry) Push(tag string, archive []byte) error {
	return r.PushLayers(tag, Layer{"application/vnd.cncf.flux.content.v1.tar+gzip", archive})
}
