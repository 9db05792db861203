package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/budget"
)

// Wanted is the reference of an OCIRepository. A digest takes precedence over a
// version range, and the range over a tag; the default is the tag latest.
type Wanted struct {
	Tag, Digest string
	// SemVer is a version range for the tags that match the regular expression Filter.
	SemVer, Filter string
	// MediaType is the media type of the layer, or "" for the first layer.
	MediaType string
}

// NoMatchError is returned if no tag matches the version range.
type NoMatchError struct{ SemVer, Filter string }

func (e *NoMatchError) Error() string {
	if e.Filter != "" {
		return fmt.Sprintf("no tag matches both %q and the semver range %q", e.Filter, e.SemVer)
	}
	return fmt.Sprintf("no tag matches the semver range %q", e.SemVer)
}

// Select returns the selected artifact and its stored layer.
func Select(ctx context.Context, address string, wanted Wanted, access Access) (Artifact, []byte, error) {
	found, image, err := wanted.image(ctx, address, access)
	if err != nil {
		return Artifact{}, nil, err
	}
	layer, err := layerOf(image, wanted.MediaType, wanted.MediaType == "")
	if err != nil {
		return found, nil, fmt.Errorf("fetching %s: %w", found.name(), err)
	}
	content, err := compressed(layer, access.Progress)
	if err != nil {
		return found, nil, fmt.Errorf("fetching %s: %w", found.name(), err)
	}
	return found, content, nil
}

// image reads the manifest of the wanted artifact.
func (w Wanted) image(ctx context.Context, address string, access Access) (Artifact, v1.Image, error) {
	repository, options, err := access.repository(ctx, address)
	if err != nil {
		return Artifact{}, nil, err
	}
	reference, err := w.reference(repository, access, options)
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("resolving %s: %w", address, err)
	}
	return manifest(reference.String(), reference, options)
}

func (w Wanted) reference(repository name.Repository, access Access, options []remote.Option) (name.Reference, error) {
	switch {
	case w.Digest != "":
		digest, err := v1.NewHash(w.Digest)
		if err != nil {
			return nil, fmt.Errorf("invalid digest %q: %w", w.Digest, err)
		}
		return repository.Digest(digest.String()), nil
	case w.SemVer != "":
		tags, err := access.tagsOf(repository, options)
		if err != nil {
			return nil, fmt.Errorf("listing the tags: %w", err)
		}
		tag, err := w.newest(tags)
		return repository.Tag(tag), err
	case w.Tag != "":
		return repository.Tag(w.Tag), nil
	}
	return repository.Tag(name.DefaultTag), nil
}

// newest returns the tag with the highest version in the range.
func (w Wanted) newest(tags []string) (string, error) {
	constraint, err := budget.Range(w.SemVer)
	if err != nil {
		return "", fmt.Errorf("invalid semver range %.80q: %w", w.SemVer, err)
	}
	filter, err := budget.Regexp(w.Filter)
	if err != nil {
		return "", fmt.Errorf("invalid regular expression %.80q: %w", w.Filter, err)
	}
	var best *semver.Version
	newest := ""
	for _, tag := range tags {
		version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		if err != nil || !filter.MatchString(tag) || !constraint.Check(version) {
			continue
		}
		if best == nil || version.GreaterThan(best) {
			best, newest = version, tag
		}
	}
	if best == nil {
		return "", &NoMatchError{w.SemVer, w.Filter}
	}
	return newest, nil
}
