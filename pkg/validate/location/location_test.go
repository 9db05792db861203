package location_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/validate/location"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

const (
	schemaText = `{"properties": {"spec": {}}}`
	crdText    = "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: example.com, names: {kind: Widget}}\n"
)

// base has no schemas. It records the second request, and returns that its objects are valid.
type base struct{ further []verdict.Request }

func (b *base) Validate(_ context.Context, r verdict.Request) ([]verdict.Verdict, error) {
	verdicts := make([]verdict.Verdict, len(r.Objects))
	if len(r.Schemas)+len(r.CRDs) > 0 {
		b.further = append(b.further, r)
		return verdicts, nil
	}
	for i := range verdicts {
		verdicts[i] = verdict.Verdict{Unknown: "no schema", MissingSchema: true}
	}
	return verdicts, nil
}

func object(apiVersion, kind string) json.RawMessage {
	text, _ := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind})
	return text
}

func newSchemas(t *testing.T, b *base, cache string, now time.Time, values ...string) *location.Schemas {
	t.Helper()
	s, err := location.New(values, b, location.Settings{Agent: "flux/test", Cache: cache, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validateOne(t *testing.T, s *location.Schemas, apiVersion, kind string) verdict.Verdict {
	t.Helper()
	verdicts, err := s.Validate(t.Context(), verdict.Request{Kubernetes: "1.36", Objects: []json.RawMessage{object(apiVersion, kind)}})
	if err != nil {
		t.Fatal(err)
	}
	return verdicts[0]
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDirectories checks which file of a directory has the schema of a kind.
func TestDirectories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, template, file, text, source string }{
		{"catalog", "", "example.com/widget_v1.json", schemaText, "example.com/widget_v1.json"},
		{"kubeconform", "", "widget-example-v1.json", schemaText, "widget-example-v1.json"},
		{"definition", "", "deep/er/crds.yaml", crdText, "deep/er/crds.yaml"},
		{"template", "/{{ .Group }}/{{.ResourceKind}}.json", "example.com/widget.json", schemaText, "example.com/widget.json"},
		{"suffix", "/{{.ResourceKind}}{{.KindSuffix}}{{.StrictSuffix}}.json", "widget-example-v1-strict.json", schemaText, "widget-example-v1-strict.json"},
		{"another version", "", "example.com/widget_v2.json", schemaText, ""},
		{"another group", "", "example.org/widget_v1.json", schemaText, ""},
		{"another kind", "", "example.com/widgets_v1.json", schemaText, ""},
		{"a definition of another kind", "", "crds.yaml", strings.Replace(crdText, "kind: Widget", "kind: Gadget", 1), ""},
		{"a definition that is hidden", "", ".git/crds.yaml", crdText, ""},
		{"a definition in another file", "", "crds.txt", crdText, ""},
		{"a definition beside a template", "/{{.ResourceKind}}.json", "crds.yaml", crdText, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, c.file, c.text)
			b := &base{}
			v := validateOne(t, newSchemas(t, b, "", time.Now(), dir+c.template), "example.com/v1", "Widget")
			switch {
			case c.source == "" && (v.Unknown != "no schema, and no schema location has a schema" || !v.MissingSchema || len(b.further) > 0):
				t.Errorf("got %+v", v)
			case c.source != "" && (v.Unknown != "" || v.Source != filepath.Join(dir, c.source) || len(b.further) != 1):
				t.Errorf("got %+v, want %s", v, c.source)
			}
		})
	}
}

// TestOneRequest checks that each schema is sent once for all objects of its kind.
func TestOneRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "example.com/gadget_v1.json", schemaText)
	write(t, dir, "crds.yaml", crdText)
	b := &base{}
	objects := []json.RawMessage{object("example.com/v1", "Gadget"), object("example.com/v1", "Widget"), object("example.com/v1", "Other"), object("example.com/v1", "Gadget")}
	verdicts, err := newSchemas(t, b, "", time.Now(), dir).Validate(t.Context(), verdict.Request{Kubernetes: "1.36", Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	if r := b.further[0]; len(r.Schemas) != 1 || len(r.CRDs) != 1 || len(r.Objects) != 3 || len(b.further) != 1 {
		t.Errorf("%d schemas, %d definitions, %d objects", len(r.Schemas), len(r.CRDs), len(r.Objects))
	}
	for i, missing := range []bool{false, false, true, false} {
		if verdicts[i].MissingSchema != missing {
			t.Errorf("object %d: %+v", i, verdicts[i])
		}
	}
}

// TestHostileKinds checks that the kinds of a repository select no files outside of a location.
func TestHostileKinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "secret_v1.json", schemaText)
	write(t, dir, "in/link", "")
	if err := os.Symlink(filepath.Join(dir, "secret_v1.json"), filepath.Join(dir, "in", "linked_v1.json")); err != nil {
		t.Fatal(err)
	}
	s := newSchemas(t, &base{}, "", time.Now(), filepath.Join(dir, "in")+"/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json")
	for _, kind := range [][2]string{{"a/v1", "../secret"}, {"a/../v1", "x"}, {"a/v1", `..\secret`}, {"a/v1", ".."}, {"v1", "secret"}, {"a b/v1", "x"}, {"a/v1", "se?cret"}, {"a/v1", "se%2fcret"}, {"a/v1", ""}} {
		if v := validateOne(t, s, kind[0], kind[1]); !v.MissingSchema || v.Source != "" {
			t.Errorf("%v: %+v", kind, v)
		}
	}
	if v := validateOne(t, s, "a/v1", "linked"); !v.Unreadable || v.MissingSchema {
		t.Errorf("a link out of the location: %+v", v)
	}
}

// TestUnusableFiles checks that a file that cannot be used is not a missing schema.
func TestUnusableFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "not a JSON schema",
		"<html>":                   "not a JSON schema",
		`[1]`:                      "not a JSON schema",
		`{"message": "not found"}`: "it has no properties",
		"a: &a [*a]":               "contains itself",
		"kind: CustomResourceDefinition\nspec: {group: example.org, names: {kind: Widget}}": "defines Widget.example.org, not Widget.example.com",
		strings.Repeat("a", 9<<20): "larger than 8 MiB",
	} {
		dir := t.TempDir()
		write(t, dir, "widget.json", text)
		v := validateOne(t, newSchemas(t, &base{}, "", time.Now(), dir+"/{{.ResourceKind}}.json"), "example.com/v1", "Widget")
		if !v.Unreadable || v.MissingSchema || v.Fix == "" || !strings.Contains(v.Unknown, want) || !strings.Contains(v.Unknown, "widget.json") {
			t.Errorf("%.50q: got %+v, want %q", text, v, want)
		}
	}
	dir := t.TempDir()
	write(t, dir, "chart.yaml", "{{ CustomResourceDefinition }}: [")
	_, err := newSchemas(t, &base{}, "", time.Now(), dir).Validate(t.Context(), verdict.Request{Kubernetes: "1.36", Objects: []json.RawMessage{object("example.com/v1", "Widget")}})
	if err == nil || !strings.HasPrefix(err.Error(), "reading "+filepath.Join(dir, "chart.yaml")) {
		t.Errorf("a file that is not YAML: %v", err)
	}
}

// site is a server of schemas that counts its requests.
type site struct {
	mu       sync.Mutex
	requests []string
	status   int
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.URL.Path)
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
	case r.URL.Path == "/example.com/widget_v1.json":
		_, _ = fmt.Fprint(w, schemaText)
	case r.URL.Path == "/example.com/endless_v1.json":
		_, _ = fmt.Fprint(w, strings.Repeat("[", 9<<20))
	case r.URL.Path == "/example.com/away_v1.json":
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// TestServers checks the requests for schemas, what is kept of them, and for how long.
func TestServers(t *testing.T) {
	t.Parallel()
	at := &site{}
	server := httptest.NewServer(at)
	defer server.Close()
	template := server.URL + "/{{ .Group }}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json?token=hidden"
	cache, now := filepath.Join(t.TempDir(), "cache"), time.Now()
	for _, c := range []struct {
		name, kind string
		after      time.Duration
		requests   int
	}{
		{"first", "Widget", 0, 1}, {"kept", "Widget", 23 * time.Hour, 0}, {"too old", "Widget", 25 * time.Hour, 1}, {"not found", "Other", 0, 1}, {"not found again", "Other", 0, 1},
	} {
		before, b := at.count(), &base{}
		s := newSchemas(t, b, cache, now.Add(c.after), template)
		for range 2 { // the second one from memory
			v := validateOne(t, s, "example.com/v1", c.kind)
			if found := v.Source == server.URL+"/example.com/widget_v1.json"; found != (c.kind == "Widget") || found == v.MissingSchema {
				t.Errorf("%s: %+v", c.name, v)
			}
		}
		if got := at.count() - before; got != c.requests {
			t.Errorf("%s: %d requests, want %d", c.name, got, c.requests)
		}
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files in the cache: %v", len(entries), err)
	}
	for kind, want := range map[string]string{"Endless": "larger than 8 MiB", "Away": "is not encrypted"} {
		if v := validateOne(t, newSchemas(t, &base{}, cache, now, template), "example.com/v1", kind); !v.Unreadable || !strings.Contains(v.Unknown, want) || strings.Contains(v.Unknown, "hidden") {
			t.Errorf("%s: %+v", kind, v)
		}
	}
	at.status = http.StatusForbidden
	// The second location is not used: the first one may have another schema.
	dir := t.TempDir()
	write(t, dir, "example.com/other_v1.json", schemaText)
	if v := validateOne(t, newSchemas(t, &base{}, cache, now, template, dir), "example.com/v1", "Other"); !v.Unreadable || !strings.Contains(v.Unknown, "unexpected status 403 Forbidden") {
		t.Errorf("got %+v", v)
	}
}

// TestOrder checks that the first location with a schema is used.
func TestOrder(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, dir := range dirs[1:] {
		write(t, dir, "example.com/widget_v1.json", schemaText)
	}
	v := validateOne(t, newSchemas(t, &base{}, "", time.Now(), slices.Insert(dirs, 0, "default")...), "example.com/v1", "Widget")
	if v.Source != filepath.Join(dirs[1], "example.com", "widget_v1.json") {
		t.Errorf("got %s", v.Source)
	}
}

// TestInvalidLocations checks that no request is sent for a location that is invalid.
func TestInvalidLocations(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"missing":                                         "missing is not a directory",
		"missing/{{.ResourceKind}}.json":                  "missing is not a directory",
		"{{.Kind}}":                                       "{{.Kind}} is not supported",
		"{{":                                              "invalid --schema-location",
		"http://example.com/{{.ResourceKind}}":            "http://example.com/ is not encrypted: use https",
		"ftp://example.com/{{.ResourceKind}}":             "unsupported scheme",
		"https://{{.Group}}/{{.ResourceKind}}":            "must not be a template",
		"https://a.{{.Group}}/{{.ResourceKind}}":          "must not be a template",
		"https://example.com":                             "must not be a template",
		"https://example.com/schemas/":                    "does not contain {{.ResourceKind}}",
		"https://u:hunter2@example.com/{{.ResourceKind}}": "credentials in the URL of example.com are not supported",
	} {
		_, err := location.New([]string{value}, &base{}, location.Settings{})
		var remedy *hint.Error
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || !errors.As(err, &remedy) {
			t.Errorf("%s: got %v, want %q with a remedy", value, err, want)
		}
	}
}
