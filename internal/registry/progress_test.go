package registry_test

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	served "github.com/google/go-containerregistry/pkg/registry"

	"github.com/fluxkit/flux/internal/registry"
)

// TestProgress: what is pushed and fetched is reported up to its end.
func TestProgress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(served.New())
	t.Cleanup(server.Close)
	address := registry.Scheme + strings.TrimPrefix(server.URL, "http://") + "/app:v1"
	var mu sync.Mutex
	var done, total int64
	access := registry.Access{Insecure: true, Progress: func(d, of int64) {
		mu.Lock()
		defer mu.Unlock()
		done, total = max(done, d), of
	}}
	archive := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	if _, err := registry.Push(t.Context(), address, archive, nil, time.Unix(0, 0), access); err != nil {
		t.Fatal(err)
	}
	if done == 0 || done != total {
		t.Errorf("pushed %d of %d bytes", done, total)
	}
	done, total = 0, 0
	_, fetched, err := registry.Fetch(t.Context(), address, access)
	if err != nil {
		t.Fatal(err)
	}
	if size := int64(len(fetched)); done != size || total != size {
		t.Errorf("fetched %d of %d bytes, there are %d", done, total, size)
	}
}

// TestPushFailsWithProgress does not hang when nothing can be sent.
func TestPushFailsWithProgress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(served.New())
	server.Close()
	address := registry.Scheme + strings.TrimPrefix(server.URL, "http://") + "/app:v1"
	_, err := registry.Push(t.Context(), address, nil, nil, time.Unix(0, 0), registry.Access{Insecure: true, Progress: func(int64, int64) {}})
	if err == nil {
		t.Error("pushed to a registry that is not there")
	}
}
