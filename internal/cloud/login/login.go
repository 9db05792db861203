// Package login gets credentials for registries with the libraries of cloud providers. Only the
// helper program links it.
package login

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/auth"
	"github.com/fluxcd/pkg/auth/aws"
	"github.com/fluxcd/pkg/auth/azure"
	"github.com/fluxcd/pkg/auth/gcp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/helper"
)

// providerOf returns the implementation of a provider. A token of a provider is sent to its own
// endpoints and to the registry only if ParseArtifactRepository accepts the registry.
func providerOf(name string) (auth.ArtifactRegistryCredentialsProvider, error) {
	switch name {
	case cloud.AWS:
		return aws.Provider{}, nil
	case cloud.Azure:
		return azure.Provider{}, nil
	case cloud.GCP:
		return gcp.Provider{}, nil
	}
	return nil, fmt.Errorf("unknown provider %q", name)
}

// Login returns credentials for a registry. It runs the steps of auth.GetArtifactRegistryCredentials
// one by one, because failures of each step have a different remedy.
func Login(ctx context.Context, r cloud.Input, query helper.Query) (credentials cloud.Credentials, err error) {
	provider, err := providerOf(r.Provider)
	if err != nil {
		return credentials, err
	}
	if _, err := name.NewRegistry(r.Registry, name.StrictValidation); err != nil {
		return credentials, err
	}
	failed := func(step cloud.Step, err error) (cloud.Credentials, error) { return credentials, Failed(step, err) }
	registry, err := provider.ParseArtifactRepository(r.Registry)
	if err != nil {
		return failed(cloud.CheckRegistry, err)
	}
	// Like the Flux 2.9 CLI, but unlike the controllers, this accepts a login of the Azure CLI.
	options := []auth.Option{auth.WithAllowShellOut()}
	scope, err := provider.GetAccessTokenOptionsForArtifactRepository(r.Registry)
	if err != nil {
		return failed(cloud.Identify, err)
	}
	options = append(options, scope...)
	var token auth.Token
	if r.Federated != nil {
		token, err = federated(ctx, provider, r.Federated, query, options)
	} else {
		token, err = auth.GetAccessToken(ctx, provider, options...)
	}
	if err != nil {
		return failed(cloud.Identify, err)
	}
	issued, err := provider.NewArtifactRegistryCredentials(ctx, registry, token, options...)
	if err != nil {
		return failed(cloud.Exchange, err)
	}
	config, err := authn.Authorization(ctx, issued)
	if err != nil {
		return failed(cloud.Exchange, err)
	}
	return cloud.Credentials{Username: config.Username, Password: config.Password}, nil
}

// federated exchanges the OIDC token of a CI system in the same way as controllers exchange ServiceAccount tokens.
func federated(ctx context.Context, provider auth.Provider, annotations map[string]string, query helper.Query, options []auth.Option) (auth.Token, error) {
	account := corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "flux", Namespace: "ci", Annotations: annotations}}
	audiences, err := provider.GetAudiences(ctx, account)
	if err != nil {
		return nil, err
	}
	var token string
	if err := query(ctx, audiences[0], &token); err != nil {
		return nil, err
	}
	return provider.NewTokenForServiceAccount(ctx, token, account, options...)
}

// Failed returns the error of a step.
func Failed(step cloud.Step, err error) error {
	return &helper.Error{Step: string(step), Text: excerpt(err)}
}

// excerptMax is the maximum length of a library error in a message.
const excerptMax = 500

// excerpt returns the beginning of an error in one line. The Azure client reports each
// attempted credential on a separate line, followed by the requests and responses.
func excerpt(err error) string {
	text := strings.TrimPrefix(err.Error(), "failed to get access token for Git repository: ")
	text = strings.TrimPrefix(text, "failed to create provider access token for the controller: ")
	if _, tried, ok := strings.Cut(text, "Attempted credentials:"); ok {
		text = tried
	}
	var facts []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "GET ") && !strings.HasPrefix(line, "POST ") && !strings.HasPrefix(line, "To troubleshoot") {
			facts = append(facts, strings.TrimSuffix(line, "."))
		}
	}
	text = strings.Join(facts, "; ")
	if len(text) > excerptMax {
		text = strings.ToValidUTF8(text[:excerptMax], "") + "…"
	}
	return text
}
