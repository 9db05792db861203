package kube_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube"
)

// endless writes a text again and again until the client has gone.
func endless(w io.Writer, text string) {
	more := []byte(strings.Repeat(text, (1<<20)/len(text)))
	for _, err := w.Write(more); err == nil; _, err = w.Write(more) { //nolint:revive // it only writes
	}
}

// hostile returns a client of a server.
func hostile(t *testing.T, serve http.HandlerFunc) *kube.Client {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestBoundedResponses reads responses without an end.
func TestBoundedResponses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status      int
		begin, more string
		want        string
	}{
		"a text":   {http.StatusOK, `{"gitVersion":"`, "x", "/version: the response is larger than 32 MiB"},
		"values":   {http.StatusOK, `{"a":[` + strings.Repeat("1,", 2_000_001) + `1]}`, "", "/version: the response has more than 2000000 JSON values"},
		"an error": {http.StatusForbidden, `{"kind":"Status","message":"`, "x", "/version: the error response is larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.begin)
				if c.more != "" {
					endless(w, c.more)
				}
			})
			_, err := client.Raw(t.Context(), "/version")
			var exceeded *budget.ExceededError
			if !errors.As(err, &exceeded) || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestBoundedEvents watches a server whose first event has no end: the watch is opened again.
func TestBoundedEvents(t *testing.T) {
	t.Parallel()
	watches := 0
	client := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if watches++; watches == 1 {
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"a":"`)
			endless(w, "x")
			return
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"2"}}}`+"\n")
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := ""
	err := client.Follow(ctx, podResource(), kube.Selection{Namespace: "web"}, "1", func(e kube.Event) (bool, error) {
		metadata, _ := e.Object["metadata"].(map[string]any)
		seen, _ = metadata["name"].(string)
		return true, nil
	})
	if err != nil || seen != "a" || watches != 2 {
		t.Errorf("%v: saw %q in %d watches", err, seen, watches)
	}
}
