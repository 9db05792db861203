package plugin

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/download"
)

// extractBytes unpacks data as an archive, and ignores errors.
func extractBytes(t *testing.T, f format, data []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := extract(t.Context(), f, bytes.NewReader(data), int64(len(data)), wanted{path: "flux-tool"}, &out); err == nil && out.Len() == 0 {
		t.Error("an empty program is accepted")
	}
}

// served returns a catalog that is served over TLS by a handler, and its host.
func served(t *testing.T, handler http.HandlerFunc) (*Catalog, string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	c, err := OpenCatalog(server.URL+"/base", "flux/test")
	must(t, err)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c.client, err = download.For(web.Server{CA: ca}, "flux/test")
	must(t, err)
	return c, server.URL
}

func TestCatalogOverHTTPS(t *testing.T) {
	t.Parallel()
	c, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != "flux/test" {
			http.Error(w, "", http.StatusTeapot)
			return
		}
		switch r.URL.Path {
		case "/base/tool.yaml":
			_, _ = io.WriteString(w, head+"- version: 1.0.0\n  platforms: ["+here(sumA)+"]\n")
		case "/base/catalog.yaml":
			_, _ = io.WriteString(w, "apiVersion: cli.fluxcd.io/v1beta1\nkind: PluginCatalog\nplugins: [{name: tool}]\n")
		default:
			http.NotFound(w, r)
		}
	})
	m, err := c.Manifest(t.Context(), "tool")
	if err != nil || m.Versions[0].Version != "1.0.0" {
		t.Errorf("got %v, %v", m, err)
	}
	if _, err := c.Manifest(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "not found in the catalog") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Manifest(t.Context(), "../base/tool"); err == nil || !strings.Contains(err.Error(), "not found in the catalog") {
		t.Errorf("got %v", err)
	}
}

func TestNoCatalog(t *testing.T) {
	t.Parallel()
	c, _ := served(t, http.NotFound)
	var catalog *CatalogError
	if _, err := c.Manifest(t.Context(), "tool"); !errors.As(err, &catalog) {
		t.Errorf("got %v", err)
	}
	c, err := OpenCatalog(filepath.Join(t.TempDir(), "missing"), "")
	must(t, err)
	if _, err := c.Manifest(t.Context(), "tool"); !errors.As(err, &catalog) {
		t.Errorf("got %v", err)
	}
	// An unknown certificate is rejected.
	c, address := served(t, http.NotFound)
	c.client = download.New("flux/test")
	if _, err := c.Index(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
}

func TestTemporaryFailures(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c, _ := served(t, func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	if _, err := c.Index(t.Context()); err == nil || !strings.Contains(err.Error(), "403 Forbidden") || asked.Load() != 2 {
		t.Errorf("%d requests, %v", asked.Load(), err)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for target, problem := range map[string]string{
		"again":                    "more than 10 redirects",
		plain.URL + "/x":           "is not encrypted",
		"http://example.com/":      "is not encrypted",
		"file:///etc/passwd":       "is not encrypted",
		"https:///nowhere":         "has no host",
		"good?signature=dontshow1": "",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			c, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "good") {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				http.Redirect(w, r, target, http.StatusFound)
			})
			_, err := c.Index(t.Context())
			if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "dontshow") {
				t.Errorf("got %v, want %q", err, problem)
			}
		})
	}
}

func TestCatalogIsBounded(t *testing.T) {
	t.Parallel()
	c, _ := served(t, func(w http.ResponseWriter, _ *http.Request) {
		line := bytes.Repeat([]byte("#"), 1<<16)
		for range textMax>>16 + 2 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	if _, err := c.Index(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 10 MiB") {
		t.Errorf("got %v", err)
	}
	hanging, _ := served(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := hanging.Index(ctx); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, problem := range map[string]string{
		"http://example.com/":      "is not encrypted",
		"http://127.0.0.1:8080":    "",
		"http://[::1]/":            "",
		"http://localhost":         "",
		"http://localhost.evil.io": "is not encrypted",
		"ftp://example.com":        "unsupported scheme",
		"https://":                 "has no host",
		"https://a:b@example.com":  "",
		"https://\x7f":             "invalid plugin catalog address",
		"file:///srv/catalog":      "",
		"./catalog":                "",
	} {
		c, err := OpenCatalog(address, "")
		if got := fmt.Sprint(err); problem == "" && err != nil || !strings.Contains(got, problem) && problem != "" {
			t.Errorf("%q: %v, want %q", address, err, problem)
		}
		if err == nil && strings.Contains(c.Address, "b@") {
			t.Errorf("%q is shown", c.Address)
		}
	}
}

// TestDirectoryOf checks the directories of file URLs on Windows and on other systems.
func TestDirectoryOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ system, address, want string }{
		{"linux", "file:///srv/catalog", "/srv/catalog"},
		{"darwin", "file:///Users/ada/my%20catalog", "/Users/ada/my catalog"},
		{"windows", "file:///C:/plugins/catalog", `C:\plugins\catalog`},
		{"windows", "file://localhost/C:/plugins", `C:\plugins`},
		{"windows", "file://server/share/plugins", `\\server\share\plugins`},
		{"windows", "file:///plugins", `\plugins`},
	} {
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := directoryOf(c.system, u); got != c.want {
			t.Errorf("%s on %s: %s, want %s", c.address, c.system, got, c.want)
		}
	}
}

// TestFolderCatalog checks that manifests in a folder can refer to files in it and to URLs, but
// to no other files.
func TestFolderCatalog(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	must(t, os.Symlink(secret, filepath.Join(s.dir, "link")))
	must(t, os.Mkdir(filepath.Join(s.dir, "plugins"), 0o755))
	must(t, os.WriteFile(filepath.Join(s.dir, "plugins", "tool.yaml"), []byte(head+"- version: 1.0.0\n  platforms: ["+here(sumA)+"]\n"), 0o600))
	if _, err := s.catalog.Manifest(t.Context(), "tool"); err != nil {
		t.Error(err)
	}
	for _, reference := range []string{secret, "../secret", "link", "file://" + secret, "plugins", "http://example.com/x"} {
		body, err := s.catalog.open(t.Context(), reference)
		if err == nil {
			t.Errorf("%q is opened", reference)
			_ = body.Close()
		}
	}
}

// TestRemoteCatalogNamesNoFiles checks that a catalog on the network cannot refer to local
// files.
func TestRemoteCatalogNamesNoFiles(t *testing.T) {
	t.Parallel()
	var asked []string
	c, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		http.NotFound(w, r)
	})
	for _, reference := range []string{"file:///etc/passwd", "/etc/passwd", "t.tar.gz"} {
		if body, err := c.open(t.Context(), reference); err == nil {
			t.Errorf("%q is opened", reference)
			_ = body.Close()
		}
	}
	if got := strings.Join(asked, " "); got != "/etc/passwd /base/t.tar.gz" {
		t.Errorf("asked for %s", got)
	}
}

func TestCredentialsAreNotRecorded(t *testing.T) {
	t.Parallel()
	c, err := OpenCatalog("https://user:password@example.com/plugins", "")
	must(t, err)
	if got := c.address("t.tar.gz"); got != "https://example.com/plugins/t.tar.gz" {
		t.Errorf("got %s", got)
	}
	signed, err := OpenCatalog("https://user:password@example.com/plugins/?sig=secret#secret", "")
	must(t, err)
	for _, shown := range []string{signed.Address, signed.at(indexFile), signed.address("https://host/t.tar.gz?sig=secret"), signed.address("t.tar.gz?sig=secret")} {
		if strings.Contains(shown, "secret") || strings.Contains(shown, "password") {
			t.Errorf("%s is shown", shown)
		}
	}
	for _, unsafe := range []string{"http://u:password@example.com/?sig=secret", "ftp://u:password@example.com/?sig=secret"} {
		if _, err := OpenCatalog(unsafe, ""); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: %v", unsafe, err)
		}
	}
	u, err := url.Parse("https://user:password@example.com/x?token=1")
	must(t, err)
	if got := web.Bare(u); got != "https://example.com/x" {
		t.Errorf("got %s", got)
	}
}
