// Package oci has the flags and errors of commands on OCI artifacts.
package oci

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// AddAccess adds the flags for the access to registries.
func AddAccess(a *app.App, flags *pflag.FlagSet, access *registry.Access) {
	access.Wrap = a.Secrets.Transport
	access.Provider = "generic"
	access.Login = cloud.New(a.Helpers, a.Secrets.AddLogin).Login
	flags.StringVar(&access.Credentials, "creds", "", "user:password or a token for the registry (default: the credentials of docker login)")
	flags.BoolVar(&access.Insecure, "insecure-registry", false, "connect to the registry without TLS")
	flags.Var(command.Choice{Value: &access.Provider, Allowed: []string{"generic", cloud.AWS, cloud.Azure, cloud.GCP, cloud.GitHub, cloud.GitLab}}, "provider", "authenticate with the identity in the environment: generic (none), aws, azure, gcp, or github and gitlab in CI jobs")
}

// Address returns the address of an artifact, the only argument of these commands.
func Address(cmd *cobra.Command, args []string) (string, error) {
	usage := cmd.CommandPath() + " oci://ghcr.io/org/manifests"
	if len(args) != 1 {
		return "", hint.Errorf(usage, "an artifact address is required")
	}
	if rest, ok := strings.CutPrefix(args[0], registry.Scheme); !ok || rest == "" {
		return "", hint.Errorf(usage, "invalid address %q: must begin with %s", WithoutCredentials(args[0]), registry.Scheme)
	}
	return args[0], nil
}

// CompleteAddress completes the scheme of an address. Registries are not queried.
func CompleteAddress(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && strings.HasPrefix(registry.Scheme, prefix) {
		return []string{registry.Scheme}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// WithoutCredentials removes credentials and secret query parameters from an address. CI systems
// add credentials to the remote URLs of their clones.
func WithoutCredentials(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return redact.Text(address)
	}
	query := u.Query()
	secret := slices.Collect(maps.Keys(query))
	secret = slices.DeleteFunc(secret, func(name string) bool { return !redact.Named(name) })
	if len(secret) == 0 && (u.User == nil || u.Scheme == "ssh") {
		return address
	}
	if u.Scheme != "ssh" {
		u.User = nil
	}
	for _, name := range secret {
		query.Del(name)
	}
	if len(secret) > 0 {
		u.RawQuery = query.Encode()
	}
	return u.String()
}
