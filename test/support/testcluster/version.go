package testcluster

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// CRDs returns the CRDs of a version of Flux: of a distribution that flux embeds,
// or of an older one in test/versions. An empty version is the default.
func CRDs(version string) ([]*unstructured.Unstructured, error) {
	if _, embedded := controllers.FindDistribution(version); !embedded {
		return olderCRDs(version)
	}
	return manifests.CRDs(version)
}

// olderCRDs reads the CRDs that `make versions` has generated.
func olderCRDs(version string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(filepath.Join(Root(), "test", "versions", version+".crds.yaml.gz"))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	content, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs of Flux %s: %w", version, err)
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs of Flux %s: %w", version, err)
	}
	return Decode(data)
}

// InstallCRDs installs the CRDs of all kinds of Flux.
func (c *Cluster) InstallCRDs(ctx context.Context) error { return c.Upgrade(ctx, "") }

// Upgrade installs the CRDs of a version of Flux over those of another one, whose
// objects remain.
func (c *Cluster) Upgrade(ctx context.Context, version string) error {
	found, err := c.revisions(ctx)
	if err != nil {
		return err
	}
	if c.crds.version == version && c.crds.revisions != nil && maps.Equal(c.crds.revisions, found) {
		return nil // to apply them takes the API server seconds, even without a change
	}
	crds, err := CRDs(version)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, crds); err != nil {
		return err
	}
	c.crds.version = version
	c.crds.revisions, err = c.revisions(ctx)
	return err
}

// revisions returns the UIDs and resource versions of all CRDs by name.
func (c *Cluster) revisions(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	_, err := c.Client.List(ctx, definitions(), kube.Selection{OnlyMetadata: true}, func(o controllers.Object) error {
		found[controllers.Name(o)] = controllers.Path{"metadata.uid"}.String(o) + "/" + controllers.Path{"metadata.resourceVersion"}.String(o)
		return nil
	})
	return found, err
}

// Serve replaces the installed CRDs, and all objects, with the CRDs of a Flux version.
func (c *Cluster) Serve(ctx context.Context, version string) error {
	if err := c.RemoveCRDs(ctx); err != nil {
		return err
	}
	// A client caches discovery.
	client, err := kube.New(c.Client.Config)
	if err != nil {
		return err
	}
	c.Client = client
	return c.Upgrade(ctx, version)
}
