package registry

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/budget"
)

// Limits of the tag list of a repository, which a registry sends in pages: 32 MiB are about 500,000
// tags.
const (
	maxTagBytes = 32 << 20
	maxTagPages = 5000
)

// TagsError is returned if a tag list exceeds a limit.
type TagsError struct {
	// Fact is the exceeded quantity and its limit.
	Fact string
}

func (e *TagsError) Error() string { return "the registry sends " + e.Fact }

// LimitTags returns a transport for a tag list that enforces the limits of this package. If next is
// nil, the default transport is used.
func LimitTags(next http.RoundTripper) http.RoundTripper {
	return &pages{next: cmp.Or(next, remote.DefaultTransport), left: maxTagBytes, size: maxTagBytes, most: maxTagPages}
}

// tagsOf returns the tags of a repository, or a TagsError if they exceed the limits.
func (a Access) tagsOf(repository name.Repository, options []remote.Option) ([]string, error) {
	return a.list(repository, options, &pages{left: maxTagBytes, size: maxTagBytes, most: maxTagPages})
}

func (a Access) list(repository name.Repository, options []remote.Option, limits *pages) ([]string, error) {
	next, err := a.transport()
	if err != nil {
		return nil, err
	}
	limits.next = cmp.Or(next, remote.DefaultTransport)
	return remote.List(repository, append(slices.Clone(options), remote.WithTransport(limits))...)
}

// pages limits the number and the total size of responses.
type pages struct {
	next       http.RoundTripper
	size       int64
	most       int
	mu         sync.Mutex
	left       int64
	roundTrips int
}

// RoundTrip implements http.RoundTripper.
func (p *pages) RoundTrip(request *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.roundTrips++
	tooMany := p.roundTrips > p.most
	p.mu.Unlock()
	if tooMany {
		return nil, &TagsError{fmt.Sprintf("its list of tags in more than %d pages", p.most)}
	}
	response, err := p.next.RoundTrip(request)
	if err == nil {
		response.Body = &page{response.Body, p}
	}
	return response, err
}

// page is the body of a response.
type page struct {
	io.ReadCloser
	of *pages
}

// Read implements io.Reader.
func (p *page) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.of.left -= int64(n); p.of.left < 0 {
		return n, &TagsError{"a list of tags of more than " + budget.Size(p.of.size)}
	}
	return n, err
}
