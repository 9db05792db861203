// Package artifact fetches the artifacts of sources, which source-controller serves inside the
// cluster, through the API server.
package artifact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Artifact is the artifact in the status of a source.
type Artifact struct {
	URL, Digest, Revision string
	// Server is the name of the Service that serves the artifact if URL contains an IP address.
	Server string
}

// Of returns the artifact of a source and reports whether it has one.
func Of(source controllers.Object) (Artifact, bool) {
	field := func(name string) string { return controllers.Path{"status.artifact." + name}.String(source) }
	k, _ := controllers.FindKind(controllers.Path{"kind"}.String(source))
	a := Artifact{URL: field("url"), Digest: field("digest"), Revision: field("revision"), Server: cmp.Or(k.Server, "source-controller")}
	return a, a.URL != "" && a.Digest != ""
}

// GoneError is returned if the archive no longer exists on the server because a newer one replaced it.
type GoneError struct{ URL string }

func (e *GoneError) Error() string {
	return "the artifact " + e.URL + " no longer exists on the server"
}

// Fetch returns the archive of an artifact and verifies its digest. home is the namespace of the
// server if the artifact URL contains an IP address.
func Fetch(ctx context.Context, client *kube.Client, a Artifact, home string) ([]byte, error) {
	address, err := url.Parse(a.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing the artifact URL: %w", err)
	}
	digest, want, err := hasher(a.Digest)
	if err != nil {
		return nil, err
	}
	pod, err := find(ctx, client, serviceOf(address, home, a.Server))
	if err != nil {
		return nil, fmt.Errorf("finding the server of %s: %w", a.URL, err)
	}
	archive, err := get(ctx, address, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return client.Pods().Forward(ctx, pod.namespace, pod.name, pod.port)
	})
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", a.URL, err)
	}
	digest.Write(archive)
	if got := hex.EncodeToString(digest.Sum(nil)); got != want {
		return nil, fmt.Errorf("the artifact %s has the digest %s instead of %s", a.URL, got, want)
	}
	return archive, nil
}

func hasher(digest string) (hash.Hash, string, error) {
	algorithm, want, _ := strings.Cut(digest, ":")
	switch algorithm {
	case "sha256":
		return sha256.New(), want, nil
	case "sha384":
		return sha512.New384(), want, nil
	case "sha512":
		return sha512.New(), want, nil
	default:
		return nil, "", fmt.Errorf("verifying the digest %q of the artifact: the algorithm must be one of sha256, sha384, sha512", digest)
	}
}

func get(ctx context.Context, address *url.URL, dial func(context.Context, string, string) (net.Conn, error)) (body []byte, err error) {
	transport, err := web.Server{Dial: dial}.Transport()
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, &GoneError{address.String()}
	default:
		return nil, fmt.Errorf("the server returned %s", response.Status)
	}
	most := budget.Default().Stored
	tooLarge := budget.TooLarge("", "the artifact", most)
	if response.ContentLength > most {
		return nil, tooLarge
	}
	var content bytes.Buffer
	content.Grow(int(max(response.ContentLength, 0)) + bytes.MinRead) // avoids copies while the buffer grows
	_, err = content.ReadFrom(budget.Reader(response.Body, most, tooLarge))
	return content.Bytes(), err
}
