package helm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/helm"
)

const stored = `{"name":"app","version":3,"info":{"status":"deployed"},"chart":{"metadata":{"name":"web","version":"1.2.3"}},"config":{"a":"b"},"manifest":"---\n","apply_method":"ssa"}`

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// secret is what the API shows of a Secret with a release.
func secret(text string) map[string]any {
	return map[string]any{"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(text))}}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"packed": packed(t, stored), "of old": base64.StdEncoding.EncodeToString([]byte(stored))} {
		r, err := helm.Of(secret(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Name != "app" || r.Version != 3 || r.Chart.Metadata.Version != "1.2.3" || r.Info.Status != helm.Deployed || r.Config["a"] != "b" || r.ApplyMethod != "ssa" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestErrorsHaveNoSecrets checks that errors contain no secrets.
func TestErrorsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	whole := packed(t, `{"name":"open-sesame"`)
	for name, text := range map[string]string{
		"no base64": "open-sesame!", "cut": whole[:len(whole)/2], "no JSON": packed(t, "open-sesame"), "half JSON": whole, "empty": "",
	} {
		_, err := helm.Of(secret(text))
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
