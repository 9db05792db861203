package root

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/suggest"
)

func TestNearestCommand(t *testing.T) {
	t.Parallel()
	root := NewRoot(app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now), nil)
	for _, c := range []struct{ below, word, want string }{
		{"", "recnocile", "flux reconcile"},
		{"", "k", ""},
		{"", "provision", ""},
		{"get", "kustomisation", "flux get kustomizations"},
		{"get", "HelmReleases.helm.toolkit.fluxcd.io", "flux get helmreleases"},
		{"get", "gitrepositroy", "flux get sources git"},
		{"get sources", "hlem", "flux get sources helm"},
		{"get sources", "kustomizations", "flux get kustomizations"},
		{"suspend", "oci", "flux suspend source oci"},
		{"export", "providers", "flux export alert-provider"},
		{"suspend image", "imagepolicy", "flux suspend image policy"},
		{"get", "deployments", ""},
		{"completion", "bsh", "flux completion bash"},
	} {
		cmd, _, err := root.Find(strings.Fields(c.below))
		if err != nil {
			t.Fatal(err)
		}
		if got := suggest.Command(cmd, c.word); got != c.want {
			t.Errorf("%q below %q is near %q, want %q", c.word, c.below, got, c.want)
		}
	}
}

func TestNamespaceHint(t *testing.T) {
	t.Parallel()
	for want, namespaces := range map[string][]string{
		"":                                 nil,
		`found in namespace "a": use -n a`: {"a"},
		"found in the namespaces a, b: use -n NAMESPACE":           {"a", "b"},
		"found in 4 namespaces, such as a, b, c: use -n NAMESPACE": {"a", "b", "c", "d"},
	} {
		if got := namespaceHint(namespaces); got != want {
			t.Errorf("%q gives %q, want %q", namespaces, got, want)
		}
	}
}
