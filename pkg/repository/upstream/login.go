package upstream

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Login returns cloud provider credentials for a registry host.
type Login func(ctx context.Context, provider, host string) (username, password string, err error)

// For returns the login for sources whose spec.provider is the selected provider. Other
// sources are read with the credentials of docker login.
func (l Login) For(provider string) charts.Login {
	return func(ctx context.Context, repository *unstructured.Unstructured) (username, password string, err error) {
		address, isOCI := strings.CutPrefix(controllers.Path{"spec.url"}.String(repository.Object), registry.Scheme)
		if !isOCI || provider == "" || (controllers.Path{"spec.provider"}).String(repository.Object) != provider {
			return "", "", nil
		}
		if insecure, _, _ := unstructured.NestedBool(repository.Object, "spec", "insecure"); insecure {
			return "", "", fmt.Errorf("%s has spec.insecure: %w", controllers.IDOf(repository.Object), registry.ErrInsecureLogin)
		}
		host, _, _ := strings.Cut(address, "/")
		username, password, err = l(ctx, provider, host)
		if err != nil {
			err = registry.Explain(ctx, registry.Access{}, fmt.Errorf("%s: %w", controllers.IDOf(repository.Object), err))
		}
		return username, password, err
	}
}
