package syntax_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/pkg/controllers"
)

var sources = syntax.Rules{Kinds: []string{"GitRepository", "Bucket"}, Default: "GitRepository", Any: true}

func TestReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]controllers.ID{
		"app":                  {Kind: "GitRepository", Name: "app"},
		"bucket/a":             {Kind: "Bucket", Name: "a"},
		"GitRepository/a.apps": {Kind: "GitRepository", Name: "a", Namespace: "apps"},
		"Bucket/*":             {Kind: "Bucket", Name: "*"},
		"Bucket/*.apps":        {Kind: "Bucket", Name: "*", Namespace: "apps"},
	} {
		got, err := sources.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "/", "/a", "Pod/a", "Bucket/", "Bucket/a.", "Bucket/a_b", "Bucket/a.b.c", "a/b/c", "Bucket/.a"} {
		if got, err := sources.Parse(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestLocalReferencesHaveDots(t *testing.T) {
	t.Parallel()
	got, err := syntax.Rules{Kinds: []string{"Secret"}, Local: true}.Parse("secret/my.values")
	if diff := cmp.Diff(controllers.ID{Kind: "Secret", Name: "my.values"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestInvalidValues(t *testing.T) {
	t.Parallel()
	address := func(s string) error { _, err := syntax.URL(s, "https", "ssh"); return err }
	clean := func(s string) error { _, err := syntax.Path(s); return err }
	layer := func(s string) error { _, err := syntax.ParseLayer(s); return err }
	labels := func(s string) error { _, err := syntax.Labels(strings.Split(s, ",")); return err }
	depends := func(s string) error { _, err := syntax.Dependency(s); return err }
	for _, c := range []struct {
		what     string
		check    func(string) error
		good     []string
		bad      []string
		mustHide string
	}{
		{"name", syntax.Name, []string{"a", "a-1", strings.Repeat("a", 63)}, []string{"", "a_b", "A", "-a", "a.b", strings.Repeat("a", 64)}, ""},
		{"object name", syntax.ObjectName, []string{"a.b"}, []string{"", "a..b", "a/b"}, ""},
		{"url", address, []string{"https://a/b", "ssh://git@a:22/b"}, []string{"", "ftp://a", "https://", "a/b", "https://u:hidden@a/b", "https://u:hidden@a/%zz", "git@a:b/c"}, "hidden"},
		{"range", syntax.Range, []string{"6.x", ">=1.0.0 <2.0.0", "*"}, []string{"", "newest", ">=>1"}, ""},
		{"path", clean, []string{"", "./", "a/../b", "/a"}, []string{"..", "a/../../b", "a\x00b", `..\a`}, ""},
		{"layer", layer, []string{"a/b", "a/b:copy", "a/b.v1.tar+gzip:extract"}, []string{"", "a", ":copy", "a/b:", "a/b:move", "a/b:Copy", "a/b:copy:copy", "a/b,copy", "a/b/c:copy", "a b/c"}, ""},
		{"label", labels, []string{"a=b", "a.b/c=", "a=b,a=b"}, []string{"", "a", "=b", "a=b c", "a=b,a=c"}, ""},
		{"dependency", depends, []string{"a", "b/a"}, []string{"", "/", "a/", "/a", "a/b/c", "A"}, ""},
		{"image", syntax.Image, []string{"alpine", "ghcr.io/org/app", "localhost:5000/app"}, []string{"", "https://ghcr.io/a", "ghcr.io/a:1", "ghcr.io/A", "ghcr.io/a@sha256:00", "a//b"}, ""},
	} {
		for _, s := range c.good {
			if err := c.check(s); err != nil {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
		for _, s := range c.bad {
			err := c.check(s)
			if err == nil {
				t.Errorf("%s %q is accepted", c.what, s)
			} else if c.mustHide != "" && strings.Contains(err.Error(), c.mustHide) {
				t.Errorf("%s %q: the error shows the password: %v", c.what, s, err)
			}
		}
	}
}

func TestSCPAddresses(t *testing.T) {
	t.Parallel()
	_, err := syntax.URL("git@example.com:org/app", "ssh")
	if err == nil || err.Error() != "not a URL: use ssh://git@example.com/org/app" {
		t.Error(err)
	}
}

func TestPathsAreClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "./", ".": "./", "./": "./", "apps": "./apps", "./apps/": "./apps", "/a/./b": "./a/b"} {
		if got, err := syntax.Path(text); got != want || err != nil {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
}

// Parsers must not panic, and must accept the values that they return.

func FuzzReference(f *testing.F) {
	for _, s := range []string{"app", "Kind/name.namespace", "GitRepository/a.b.c", "*/*", "//", "ä/ö"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := sources.Parse(s)
		if err != nil {
			return
		}
		text := ref.Kind + "/" + ref.Name
		if ref.Namespace != "" {
			text += "." + ref.Namespace
		}
		again, err := sources.Parse(text)
		if err != nil || again != ref {
			t.Errorf("%q is %v, but %q is %v, %v", s, ref, text, again, err)
		}
	})
}

func FuzzDependency(f *testing.F) {
	f.Add("infra/ingress")
	f.Fuzz(func(t *testing.T, s string) {
		if ref, err := syntax.Dependency(s); err == nil && strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/") != s {
			t.Errorf("%q is read as %v", s, ref)
		}
	})
}

func FuzzLabels(f *testing.F) {
	f.Add("env=dev", "a.b/c=")
	f.Fuzz(func(t *testing.T, a, b string) {
		labels, err := syntax.Labels([]string{a, b})
		if err == nil && (len(labels) == 0 || len(labels) > 2) {
			t.Errorf("%q and %q are read as %v", a, b, labels)
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://user@host/path", "oci://a:5000/b", "ssh://[::1]:22/x", "https://u:p@h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := syntax.URL(s, "https", "ssh", "oci")
		if err != nil {
			return
		}
		if _, again := syntax.URL(u.String(), "https", "ssh", "oci"); again != nil {
			t.Errorf("%q is accepted, but not %q: %v", s, u, again)
		}
	})
}

func FuzzPath(f *testing.F) {
	f.Add("./apps/../x")
	f.Fuzz(func(t *testing.T, s string) {
		clean, err := syntax.Path(s)
		if err != nil {
			return
		}
		if again, err := syntax.Path(clean); err != nil || again != clean {
			t.Errorf("%q becomes %q, which becomes %q, %v", s, clean, again, err)
		}
	})
}

func FuzzLayerRangeAndImage(f *testing.F) {
	f.Add("application/vnd.cncf.helm.chart.content.v1.tar+gzip:copy")
	f.Add(">=1.0.0 <2.0.0 || 3.x")
	f.Add("ghcr.io/org/app")
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := syntax.ParseLayer(s); err == nil && l == (syntax.Layer{}) {
			t.Errorf("%q selects no layer", s)
		}
		if err := syntax.Image(s); err == nil && strings.ContainsAny(s, " @") {
			t.Errorf("%q is taken for an image repository", s)
		}
		_ = syntax.Range(s) // must not panic
	})
}
