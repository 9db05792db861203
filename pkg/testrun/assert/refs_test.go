package assert

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestMatches checks which objects a reference to a root cause is about: its API version may be empty.
func TestMatches(t *testing.T) {
	t.Parallel()
	web := controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}
	bucket := controllers.ID{Group: "s3.aws.crossplane.io", Kind: "Bucket", Namespace: "apps", Name: "web"}
	for name, c := range map[string]struct {
		ref  Ref
		id   controllers.ID
		want bool
	}{
		"without an API version":      {Ref{Kind: "Deployment", Namespace: "apps", Name: "web"}, web, true},
		"with its API version":        {Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "apps", Name: "web"}, web, true},
		"with another group":          {Ref{APIVersion: "example.com/v1", Kind: "Deployment", Namespace: "apps", Name: "web"}, web, false},
		"with another name":           {Ref{Kind: "Deployment", Namespace: "apps", Name: "api"}, web, false},
		"a Bucket of Flux":            {Ref{Kind: "Bucket", Namespace: "apps", Name: "web"}, controllers.FluxID("Bucket", "apps", "web"), true},
		"a Bucket of another vendor":  {Ref{Kind: "Bucket", Namespace: "apps", Name: "web"}, bucket, false},
		"the Bucket of its API group": {Ref{APIVersion: "s3.aws.crossplane.io/v1beta1", Kind: "Bucket", Namespace: "apps", Name: "web"}, bucket, true},
	} {
		if got := c.ref.matches(c.id); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
