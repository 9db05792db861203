package githost

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/hint"
)

// endlessJSON sends a list without end.
func endlessJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	entry := `{"key": "` + strings.Repeat("x", 1<<16) + `"},`
	for text := "[" + entry; ; text = entry {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// endlessPages sends a page after every page, as each host links them.
func endlessPages(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page")) // 0 for the first
	start, _ := strconv.Atoi(r.URL.Query().Get("start"))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	w.Header().Set("Link", fmt.Sprintf(`<https://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, page+1))
	entries := []map[string]any{{"id": 1}, {"id": 2}}
	if strings.Contains(r.URL.Path, "/rest/") {
		_ = json.NewEncoder(w).Encode(map[string]any{"values": entries, "isLastPage": false, "nextPageStart": start + 2}) // the client may have gone
		return
	}
	for len(entries) < giteaPage {
		entries = append(entries, entries[0])
	}
	_ = json.NewEncoder(w).Encode(entries) // the client may have gone
}

// TestEndless checks that reading from a host that sends a response, or pages, without end stops at
// a limit that the error names.
func TestEndless(t *testing.T) {
	t.Parallel()
	for how, serve := range map[string]http.HandlerFunc{
		"sends a response of more than 16 MiB":                endlessJSON,
		"has lists with more pages than 2000 requests return": endlessPages,
	} {
		for name, list := range map[string]func(context.Context, Hosted, *http.Client) error{
			"github": func(ctx context.Context, h Hosted, c *http.Client) error {
				_, err := githubKeys{NewGitHub(h, c).githubAPI}.list(ctx, "title")
				return err
			},
			"gitlab": func(ctx context.Context, h Hosted, c *http.Client) error {
				host, err := NewGitLab(h, c)
				if err == nil {
					_, err = gitlabKeys{gitlabAPI: host.gitlabAPI, project: 1}.list(ctx, "title")
				}
				return err
			},
			"gitea": func(ctx context.Context, h Hosted, c *http.Client) error {
				_, err := (&giteaKeys{giteaAPI: NewGitea(h, c).giteaAPI, path: "/repos/acme/fleet/keys", titles: map[string]bool{}}).list(ctx, "title")
				return err
			},
			"bitbucket": func(ctx context.Context, h Hosted, c *http.Client) error {
				_, err := bitbucketKeys{bitbucketAPI: NewBitbucket(h, "ada", c).bitbucketAPI}.list(ctx, "title")
				return err
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewTLSServer(serve)
				t.Cleanup(server.Close)
				h := Hosted{
					Hostname: strings.TrimPrefix(server.URL, "https://"), Owner: "acme", Name: "fleet", Token: "t0ken",
					CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
				}
				client, err := Caller{Now: time.Now}.Client(h)
				if err != nil {
					t.Fatal(err)
				}
				err = list(t.Context(), h, client)
				var known *hint.Error
				if !errors.As(err, &known) || !strings.Contains(err.Error(), how) {
					t.Errorf("got %v, want %q and a remedy", err, how)
				}
			})
		}
	}
}
