package fault_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/fault"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	past, future := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		fault  *fault.Fault
		path   string
		status int
		header string
	}{
		"none":        {nil, "/fetch", 200, ""},
		"status":      {&fault.Fault{Status: 503}, "/fetch", 503, ""},
		"limit":       {&fault.Fault{Status: 429}, "/fetch", 429, "Retry-After"},
		"credentials": {&fault.Fault{Status: 401, Until: future}, "/fetch", 401, "WWW-Authenticate"},
		"ended":       {&fault.Fault{Status: 503, Until: past}, "/fetch", 200, ""},
		"unaffected":  {&fault.Fault{Status: 503}, "/push", 200, ""},
		"down":        {&fault.Fault{Down: true}, "/fetch", 0, ""},
		"slow":        {&fault.Fault{Delay: time.Millisecond}, "/fetch", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			server := httptest.NewServer(fault.Handler(root, func(r *http.Request) bool { return r.URL.Path == "/fetch" }, next))
			defer server.Close()
			if c.fault != nil {
				if err := fault.Set(root, *c.fault); err != nil {
					t.Fatal(err)
				}
			}
			if status, header := get(t, server.URL+c.path, c.header); status != c.status || c.header != "" && header == "" {
				t.Errorf("status %d, %s: %q", status, c.header, header)
			}
			for range 2 { // also without a fault
				if err := fault.Clear(root); err != nil {
					t.Fatal(err)
				}
			}
			if status, _ := get(t, server.URL+c.path, ""); status != 200 {
				t.Errorf("status %d after the fault", status)
			}
		})
	}
}

// get returns the status, or 0 for a connection that is closed without a response, and a
// header.
func get(t *testing.T, url, header string) (status int, value string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode, response.Header.Get(header)
}
