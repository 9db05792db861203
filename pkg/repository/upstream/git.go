package upstream

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/controllers"
)

// GitLogin returns provider credentials for a Git repository.
type GitLogin func(ctx context.Context, r cloud.GitRequest) (cloud.GitCredentials, error)

// GitAccess finds the credentials of GitRepositories.
type GitAccess struct {
	// Provider is the cloud provider whose identity in the environment is used, "" for none.
	Provider string
	// Data returns the data of a Secret.
	Data  func(ctx context.Context, secret controllers.ID) (map[string][]byte, error)
	Login GitLogin
	// Remedy is the remedy if no credentials are available.
	Remedy string
}

// Source returns the URL of a GitRepository with the credentials from its Secrets or its provider.
func (a GitAccess) Source(ctx context.Context, repository *unstructured.Unstructured) (remote.Source, error) {
	source := remote.Source{URL: controllers.Path{"spec.url"}.String(repository.Object)}
	provider := controllers.Path{"spec.provider"}.String(repository.Object)
	if cloud.Known(provider) && provider != a.Provider {
		remedy := a.Remedy
		if cloud.KnownGit(provider) {
			remedy = "set --provider " + provider + " to use the identity of the environment, or " + remedy
		}
		return source, hint.Errorf(remedy, "%s gets its credentials from %s, with the identity of source-controller", controllers.IDOf(repository.Object), provider)
	}
	for field, into := range map[string]*map[string][]byte{"secretRef": &source.Secret, "proxySecretRef": &source.Proxy} {
		name := controllers.Path{"spec" + "." + field + "." + "name"}.String(repository.Object)
		if name == "" {
			continue
		}
		secret := controllers.ID{Kind: controllers.Secret, Namespace: repository.GetNamespace(), Name: name}
		data, err := a.Data(ctx, secret)
		if err != nil {
			return source, hint.Errorf(a.Remedy, "reading %s (%s spec.%s): %w", secret, controllers.IDOf(repository.Object), field, err)
		}
		*into = data
	}
	if provider == "" || provider == "generic" {
		return source, nil
	}
	return source, a.login(ctx, repository, provider, &source)
}

// login replaces the credentials in the Secret of a source with credentials from its provider.
func (a GitAccess) login(ctx context.Context, repository *unstructured.Unstructured, provider string, source *remote.Source) error {
	if !cloud.KnownGit(provider) {
		return hint.Errorf(a.Remedy, "%s: provider %q does not issue Git credentials", controllers.IDOf(repository.Object), provider)
	}
	request := cloud.GitRequest{Provider: provider, URL: source.URL}
	if provider == cloud.GitHub {
		request.App = source.Secret
		proxy, err := source.ProxyURL()
		if err != nil {
			return err
		}
		request.Proxy = proxy
	}
	issued, err := a.Login(ctx, request)
	if err != nil {
		return a.explain(ctx, repository, provider, err)
	}
	// The certificates in the Secret also apply to the Git server.
	secret := map[string][]byte{"username": []byte(issued.Username), "password": []byte(issued.Password), "bearerToken": []byte(issued.Token)}
	for _, key := range []string{"ca.crt", "caFile", "tls.crt", "certFile", "tls.key", "keyFile"} {
		secret[key] = source.Secret[key]
	}
	source.Secret = secret
	return nil
}

// explain adds a remedy to a provider error.
func (a GitAccess) explain(ctx context.Context, repository *unstructured.Unstructured, provider string, err error) error {
	err = fmt.Errorf("%s: %w", controllers.IDOf(repository.Object), err)
	var failed *cloud.Error
	switch {
	case !errors.As(err, &failed):
		return err
	case failed.Step == cloud.CheckGit:
		return hint.Errorf(a.Remedy, "%w", err)
	case provider == cloud.GitHub:
		return hint.Errorf(fmt.Sprintf("check the GitHub App in Secret %q: githubAppID, githubAppInstallationID or githubAppInstallationOwner, and githubAppPrivateKey", controllers.Path{"spec.secretRef.name"}.String(repository.Object)), "%w", err)
	}
	return registry.Explain(ctx, registry.Access{}, err)
}
