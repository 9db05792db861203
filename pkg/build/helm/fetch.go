package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/egress"
	"github.com/fluxkit/flux/pkg/build/charts"
)

const (
	// chartMax is the maximum size of a packed chart. indexMax is the maximum size of an index: the indexes of
	// large repositories have tens of megabytes.
	chartMax, indexMax = 128 << 20, 64 << 20
)

// fetch returns a packed chart from a repository, a registry or the cache, and the part of its
// digest that is appended to its version.
func (r *Renderer) fetch(ctx context.Context, from charts.Chart) (packed []byte, digest string, err error) {
	if !from.Fixed() {
		vary(ctx)
	}
	u, err := url.Parse(from.URL)
	if err != nil {
		return nil, "", fmt.Errorf("invalid URL of chart %s: %w", from.Name, err)
	}
	switch u.Scheme {
	case "oci":
		return r.pull(ctx, from)
	case "http", "https":
		packed, err = r.download(ctx, from)
		return packed, from.Build, err
	}
	return nil, "", fmt.Errorf("chart %s: invalid repository URL %q: must begin with https:// or oci://", from.Name, from.URL)
}

// index holds the fields of index.yaml that are used.
type index struct {
	Entries map[string][]indexEntry `yaml:"entries"`
}

type indexEntry struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// indexOnce is an index that is fetched once for all charts in it.
type indexOnce struct {
	once  sync.Once
	index *index
	err   error
}

func (r *Renderer) download(ctx context.Context, from charts.Chart) ([]byte, error) {
	repository := strings.TrimSuffix(from.URL, "/") + "/"
	all, err := r.indexOf(ctx, repository, from.Access)
	if err != nil {
		return nil, err
	}
	entry, err := choose(all.Entries[from.Name], from)
	if err != nil {
		return nil, err
	}
	digest := strings.TrimPrefix(entry.Digest, "sha256:")
	if packed := r.cached(digest); packed != nil {
		return packed, nil
	}
	if len(entry.URLs) == 0 {
		return nil, fmt.Errorf("the index of %s has no URL for chart %s %s", from.URL, from.Name, entry.Version)
	}
	base, err := url.Parse(repository)
	if err != nil {
		return nil, fmt.Errorf("invalid repository URL: %w", err)
	}
	address, err := base.Parse(entry.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("invalid chart URL: %w", err)
	}
	packed, err := r.get(ctx, address.String(), repository, from.Access, chartMax)
	if err != nil {
		return nil, fmt.Errorf("fetching chart %s %s: %w", from.Name, entry.Version, err)
	}
	if got := digestOf(packed); digest != "" && got != digest {
		return nil, fmt.Errorf("chart %s %s has digest %s, but the index of %s lists %s", from.Name, entry.Version, got, from.URL, digest)
	}
	return packed, r.keep(packed)
}

func (r *Renderer) indexOf(ctx context.Context, repository string, access charts.Access) (*index, error) {
	r.mu.Lock()
	if r.indexes == nil {
		r.indexes = map[string]*indexOnce{}
	}
	key := repository + "\n" + access.Username
	once := r.indexes[key]
	if once == nil {
		once = &indexOnce{}
		r.indexes[key] = once
	}
	r.mu.Unlock()
	once.once.Do(func() {
		var text []byte
		if text, once.err = r.get(ctx, repository+"index.yaml", repository, access, indexMax); once.err != nil {
			once.err = fmt.Errorf("fetching the index of the Helm repository: %w", once.err)
			return
		}
		once.index, once.err = parseIndex(repository, text)
	})
	return once.index, once.err
}

func parseIndex(repository string, text []byte) (*index, error) {
	if err := budget.YAML("index of "+repository, text); err != nil {
		return nil, err
	}
	parsed := &index{}
	if err := goyaml.Unmarshal(text, parsed); err != nil {
		return nil, fmt.Errorf("reading the index of %s: %w", repository, err)
	}
	return parsed, nil
}

// choose returns the newest entry in the version range, or the entry with exactly that version.
func choose(entries []indexEntry, from charts.Chart) (*indexEntry, error) {
	if len(entries) == 0 {
		return nil, fmt.Errorf("chart %q not found in %s", from.Name, from.URL)
	}
	versions := make([]string, len(entries))
	for i, entry := range entries {
		versions[i] = entry.Version
	}
	version, err := charts.Newest(versions, from.Version)
	if err != nil {
		return nil, fmt.Errorf("chart %q in %s: %w", from.Name, from.URL, err)
	}
	return &entries[slices.Index(versions, version)], nil
}

// get fetches a file. The credentials are sent to the server of the repository only, unless PassCredentials is set.
func (r *Renderer) get(ctx context.Context, address, repository string, access charts.Access, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if access.Username != "" && (access.PassCredentials || sameServer(address, repository)) {
		request.SetBasicAuth(access.Username, access.Password)
	}
	transport, err := r.transport(access)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: web.OtherServers}
	if access.PassCredentials {
		client.CheckRedirect = nil // that of Helm
	}
	return read(client, request, "the file", limit)
}

// read returns the body of the response to a request.
func read(client *http.Client, request *http.Request, what string, limit int64) (_ []byte, err error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s returned %s", request.URL.Redacted(), response.Status)
	}
	return budget.ReadAll(response.Body, request.URL.Redacted(), what, limit)
}

func sameServer(a, b string) bool {
	one, errOne := url.Parse(a)
	other, errOther := url.Parse(b)
	return errOne == nil && errOther == nil && one.Host == other.Host && one.Scheme == other.Scheme
}

// transport returns the transport for a repository. It trusts the certificate authority and presents the client
// certificate of the repository.
func (r *Renderer) transport(access charts.Access) (http.RoundTripper, error) {
	server := web.Server{Name: "the repository", CA: access.CA, Cert: access.Cert, Key: access.Key}
	if len(server.CA)+len(server.Cert) == 0 && !access.Public {
		r.once.Do(func() { r.usual, r.failed = server.Transport() })
		return r.usual, r.failed
	}
	own, err := server.Transport()
	if err != nil || !access.Public {
		return own, err
	}
	return egress.NewTransport(own, access.Hosts), nil
}
