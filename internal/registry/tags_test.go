package registry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestTagsLimits: a registry that sends tags without end, in one page or in many, is left at a
// limit that the error names.
func TestTagsLimits(t *testing.T) {
	t.Parallel()
	for want, serve := range map[string]http.HandlerFunc{
		"the registry sent a tag list larger than 2 MiB": func(w http.ResponseWriter, _ *http.Request) {
			for text := `{"name": "app", "tags": ["1"`; ; text = `,"` + strings.Repeat("x", 100) + `"` {
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		},
		"the registry sent a tag list with more than 20 pages": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/app/tags/list?last=1>; rel="next"`)
			_, _ = fmt.Fprint(w, `{"name": "app", "tags": []}`) // the client may have gone
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/tags/list") {
					serve(w, r)
				}
			}))
			t.Cleanup(server.Close)
			repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://")+"/app", name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Access{Insecure: true}.list(repository, []remote.Option{remote.WithContext(t.Context())}, tagLimits(2<<20, 20))
			var exceeded *TagsError
			if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
