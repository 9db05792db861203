package registry

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// The limits of a repository's tag list, which a registry sends in pages: 32 MiB contain about 500,000 tags.
const (
	maxTagBytes = 32 << 20
	maxTagPages = 5000
)

// TagsError is returned if a tag list exceeds a limit.
type TagsError struct {
	// Fact describes the exceeded limit.
	Fact string
}

func (e *TagsError) Error() string { return "the registry sent " + e.Fact }

// LimitTags returns a transport for a tag list that enforces the limits of this package.
func LimitTags(next http.RoundTripper) http.RoundTripper {
	return tagLimits(maxTagBytes, maxTagPages).Transport(next)
}

func tagLimits(bytes, pages int64) web.Limits {
	return web.Limits{
		Total: bytes, TooLarge: &TagsError{"a tag list larger than " + budget.Size(bytes)},
		Requests: pages, TooMany: &TagsError{fmt.Sprintf("a tag list with more than %d pages", pages)},
	}
}

// tagsOf returns the tags of a repository, or a TagsError if they exceed the limits.
func (a Access) tagsOf(repository name.Repository, options []remote.Option) ([]string, error) {
	return a.list(repository, options, tagLimits(maxTagBytes, maxTagPages))
}

func (a Access) list(repository name.Repository, options []remote.Option, limits web.Limits) ([]string, error) {
	next, err := a.transport()
	if err != nil {
		return nil, err
	}
	return remote.List(repository, append(slices.Clone(options), remote.WithTransport(limits.Transport(next)))...)
}
