package sources

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/repository/mapped"
)

// TestRedirected checks which URLs a mapping concerns.
func TestRedirected(t *testing.T) {
	t.Parallel()
	m := mapped.Mapping{URL: "oci://ghcr.io/acme/charts", Path: "charts"}
	r := redirected(m, ociRepositories, m.URL+"/web", "oci://127.0.0.1:1/mapped-0/web", insecure, tagged("1.0.0"))
	text, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(r.policy.When, "object.spec.url.matches("), ")"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(text)
	for url, want := range map[string]bool{
		"oci://ghcr.io/acme/charts/web": true, "oci://ghcr.io/acme/charts/web/": true,
		"oci://ghcr.io/acme/charts/web2": false, "oci://ghcr.io/acme/charts": false, "oci://ghcrXio/acme/charts/web": false, "https://oci://ghcr.io/acme/charts/web": false,
	} {
		if got := pattern.MatchString(url); got != want {
			t.Errorf("%s is mapped: %t, want %t", url, got, want)
		}
	}
	for _, want := range []string{`"oci://127.0.0.1:1/mapped-0/web"`, `path: "/spec/verify"`, `path: "/spec/secretRef"`, `{"tag": "1.0.0"}`} {
		if !strings.Contains(r.policy.Patch, want) {
			t.Errorf("the patch lacks %s: %s", want, r.policy.Patch)
		}
	}
}

// TestServesBucket checks which Buckets a mapping concerns.
func TestServesBucket(t *testing.T) {
	t.Parallel()
	m := mapped.Mapping{URL: "https://s3.example.com:9000/assets", Ref: map[string]any{"prefix": "apps/"}}
	for _, c := range []struct {
		object map[string]any
		want   bool
	}{
		{map[string]any{"endpoint": "s3.example.com:9000", "bucketName": "assets"}, true},
		{map[string]any{"endpoint": "s3.example.com:9000", "bucketName": "assets", "insecure": true}, true},
		{map[string]any{"endpoint": "s3.example.com", "bucketName": "assets"}, false},
		{map[string]any{"endpoint": "s3.example.com:9000", "bucketName": "assets2"}, false},
	} {
		if got := m.Serves(t.Context(), "Bucket", mapped.BucketURL(map[string]any{"spec": c.object})); got != c.want {
			t.Errorf("%v is served: %t", c.object, got)
		}
	}
	r := bucketOf(m, "mapped-0", "127.0.0.1:1")
	if want := `object.spec.endpoint + "/" + object.spec.bucketName == "s3.example.com:9000/assets" && (has(object.spec.prefix) ? object.spec.prefix : "") == "apps/"`; r.policy.When != want {
		t.Errorf("got %s", r.policy.When)
	}
	for _, want := range []string{`"127.0.0.1:1"`, `"mapped-0"`, `path: "/spec/sts"`, `path: "/spec/secretRef"`, `path: "/spec/insecure", value: true`} {
		if !strings.Contains(r.policy.Patch, want) {
			t.Errorf("the patch lacks %s: %s", want, r.policy.Patch)
		}
	}
}
