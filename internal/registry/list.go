package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

// List returns the artifacts of a repository with the requested tags, sorted by tag in reverse order. Signatures and
// attestations of artifacts are not listed.
func List(ctx context.Context, address string, wanted func(tag string) bool, access Access) ([]Artifact, error) {
	repository, options, err := access.repository(ctx, address)
	if err != nil {
		return nil, err
	}
	tags, err := access.tagsOf(repository, options)
	if err != nil {
		return nil, fmt.Errorf("listing the tags of %s: %w", address, err)
	}
	tags = slices.DeleteFunc(tags, func(tag string) bool { return attached(tag) || !wanted(tag) })
	slices.Sort(tags)
	slices.Reverse(tags)
	found := make([]Artifact, len(tags))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	options = append(options, remote.WithContext(ctx))
	for i, tag := range tags {
		g.Go(func() error {
			one, err := manifestOf(repository.Tag(tag), options)
			found[i] = one
			return err
		})
	}
	return found, g.Wait()
}

// attached reports whether a tag refers to a cosign signature, attestation or SBOM.
func attached(tag string) bool {
	return strings.HasSuffix(tag, ".sig") || strings.HasSuffix(tag, ".att") || strings.HasSuffix(tag, ".sbom")
}

// manifestOf returns the manifest or index of a tag with a single request.
func manifestOf(tag name.Tag, options []remote.Option) (Artifact, error) {
	got, err := remote.Get(tag, options...)
	if err != nil {
		return Artifact{}, fmt.Errorf("reading the manifest of %s: %w", tag, err)
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(got.Manifest, &manifest); err != nil {
		return Artifact{}, fmt.Errorf("reading the manifest of %s: %w", tag, err)
	}
	return Artifact{
		Repository: tag.Context().Name(), Tag: tag.TagStr(), Digest: got.Digest.String(), Annotations: manifest.Annotations,
	}, nil
}
