package kube_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// versioned is an API server that serves Providers in some versions. It records the requested versions.
type versioned struct {
	served []string
	mu     sync.Mutex
	asked  []string
	// together is the number of requests that have to arrive before the first response.
	together sync.WaitGroup
	once     int
}

func (v *versioned) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := strings.TrimPrefix(request.URL.Path, "/apis/notification.toolkit.fluxcd.io")
	version, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	v.mu.Lock()
	v.asked = append(v.asked, version)
	first := len(v.asked) <= v.once
	v.mu.Unlock()
	if first {
		v.together.Done()
		v.together.Wait()
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case version == "":
		_, _ = w.Write([]byte(`{"kind":"APIGroup","versions":[{"version":"v1beta2"}]}`))
	case !slices.Contains(v.served, version):
		http.Error(w, "404 page not found", http.StatusNotFound)
	case strings.HasSuffix(rest, "providers"):
		_, _ = w.Write([]byte(`{"items":[{"metadata":{"name":"` + version + `"}}],"metadata":{"resourceVersion":"7"}}`))
	default:
		_, _ = w.Write([]byte(`{"metadata":{"name":"` + version + `"}}`))
	}
}

// TestBothVersions reads Providers from clusters that serve either version, or an older one.
func TestBothVersions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served []string
		want   string
		asked  []string
	}{
		"Flux 2.10": {[]string{"v1", "v1beta3"}, "v1", []string{"v1", "v1", "v1beta3"}},
		"Flux 2.9":  {[]string{"v1beta3", "v1beta2"}, "v1beta3", []string{"v1", "v1beta3", "v1beta3"}},
		"Flux 2.0":  {[]string{"v1beta2"}, "v1beta2", []string{"", "v1", "v1beta2", "v1beta2", "v1beta3"}},
	} {
		for way, read := range map[string]func(*kube.Client, controllers.Kind) (string, error){"list": listed, "get": gotten} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				v := &versioned{served: c.served, once: 2}
				v.together.Add(2)
				server := httptest.NewServer(v)
				t.Cleanup(server.Close)
				client, err := kube.New(&rest.Config{Host: server.URL})
				if err != nil {
					t.Fatal(err)
				}
				provider, _ := controllers.FindKind("Provider")
				for range 2 {
					if got, err := read(client, provider); got != c.want || err != nil {
						t.Errorf("read %q, want %q: %v", got, c.want, err)
					}
				}
				slices.Sort(v.asked)
				if diff := cmp.Diff(c.asked, v.asked); diff != "" {
					t.Errorf("-want +asked:\n%s", diff)
				}
			})
		}
	}
}

// listed lists with a context for each request, as a watch does for its first list.
func listed(client *kube.Client, k controllers.Kind) (name string, err error) {
	err = client.WithServedVersion(context.Background(), k, func(r kube.Resource) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := client.List(ctx, r, kube.Selection{}, func(o controllers.Object) error {
			name = controllers.Name(o)
			return nil
		})
		return err
	})
	return name, err
}

func gotten(client *kube.Client, k controllers.Kind) (string, error) {
	o, err := client.GetKind(context.Background(), k, "apps", "slack")
	return controllers.Name(o), err
}

// TestBothVersionsOfOthers reads another object in the older version than in the newer one: the kept response belongs
// to the first.
func TestBothVersionsOfOthers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.Contains(request.URL.Path, "/v1/") {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"metadata":{"name":"` + path.Base(request.URL.Path) + `"}}`))
	}))
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	provider, _ := controllers.FindKind("Provider")
	var got []string
	names := []string{"first", "second", "first"}
	err = client.WithServedVersion(t.Context(), provider, func(r kube.Resource) error {
		next := names[0]
		names = names[1:]
		o, err := client.Get(t.Context(), r, "apps", next)
		if err == nil && next == "second" {
			got = append(got, controllers.Name(o))
			o, err = client.Get(t.Context(), r, "apps", names[0])
		}
		if err == nil {
			got = append(got, controllers.Name(o))
		}
		return err
	})
	if diff := cmp.Diff([]string{"second", "first"}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// TestBothVersionsEnd cancels the context between the two calls.
func TestBothVersionsEnd(t *testing.T) {
	t.Parallel()
	v := &versioned{served: []string{"v1beta3"}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	provider, _ := controllers.FindKind("Provider")
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	err = client.WithServedVersion(ctx, provider, func(r kube.Resource) error {
		_, err := client.List(ctx, r, kube.Selection{}, func(controllers.Object) error { return nil })
		if kube.NotServed(err) {
			cancel(over)
		}
		return err
	})
	if !errors.Is(err, over) && !errors.Is(err, context.Canceled) {
		t.Errorf("read after the end: %v", err)
	}
}
