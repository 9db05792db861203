package desired

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
)

// AddProvider adds the flag --provider to fs. Without it, no provider is asked for credentials,
// because spec.provider may come from a change that others propose.
func (o *BuildOptions) AddProvider(fs *pflag.FlagSet) {
	fs.Var(command.Choice{Value: &o.Provider, Allowed: []string{cloud.AWS, cloud.Azure, cloud.GCP}}, "provider",
		"cloud provider whose identity in the environment is used for OCI sources with this spec.provider: aws, azure or gcp (default none)")
}

// LoginFor returns the login for sources whose spec.provider is the selected provider. Other
// sources are read with the credentials of docker login.
func LoginFor(a *app.App, provider string) build.Login {
	return func(ctx context.Context, repository *unstructured.Unstructured) (username, password string, err error) {
		address, isOCI := strings.CutPrefix(Text(repository, "spec", "url"), registry.Scheme)
		if !isOCI || provider == "" || Text(repository, "spec", "provider") != provider {
			return "", "", nil
		}
		if insecure, _, _ := unstructured.NestedBool(repository.Object, "spec", "insecure"); insecure {
			return "", "", fmt.Errorf("%s has spec.insecure: %w", build.ReferenceTo(repository), registry.ErrInsecureLogin)
		}
		host, _, _ := strings.Cut(address, "/")
		username, password, err = a.Helpers.Login(ctx, a, provider, host)
		if err != nil {
			err = registry.Explain(ctx, registry.Access{}, fmt.Errorf("%s: %w", build.ReferenceTo(repository), err))
		}
		return username, password, err
	}
}
