package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxcd/pkg/auth"
	"github.com/fluxcd/pkg/auth/aws"
	"github.com/fluxcd/pkg/auth/azure"
	"github.com/fluxcd/pkg/auth/githubapp"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/lazy"
)

// Git returns credentials for a Git repository.
func Git(ctx context.Context, r cloud.GitRequest) (credentials cloud.GitCredentials, err error) {
	if !cloud.KnownGit(r.Provider) {
		return credentials, fmt.Errorf("unknown provider %q", r.Provider)
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return credentials, errors.New("invalid URL") // the parse error may contain credentials
	}
	if !runs(r, u) {
		return credentials, &helper.Error{Step: string(cloud.CheckGit)}
	}
	issue := identity
	if r.Provider == cloud.GitHub {
		issue = app
	}
	if credentials, err = issue(ctx, r, u); err != nil {
		return cloud.GitCredentials{}, Failed(cloud.Identify, err)
	}
	return credentials, nil
}

// codeCommit matches the hosts of AWS CodeCommit.
var codeCommit = lazy.Regexp(`^git-codecommit(-fips)?\.[a-z]{2}(-[a-z]+)+-\d+\.amazonaws\.com(\.cn)?$`)

// runs reports whether the provider runs a Git server. Credentials are sent only to such a server and
// only over TLS; the library checks this for some providers.
func runs(r cloud.GitRequest, u *url.URL) bool {
	if u.Scheme != "https" {
		return false
	}
	switch r.Provider {
	case cloud.AWS:
		return codeCommit().MatchString(u.Host)
	case cloud.Azure:
		return u.Host == "dev.azure.com" || strings.HasSuffix(u.Host, ".visualstudio.com")
	default:
		api := "api.github.com"
		if base := r.App[githubapp.KeyAppBaseURL]; len(base) > 0 {
			parsed, err := url.Parse(string(base))
			if err != nil || parsed.Scheme != "https" {
				return false
			}
			api = parsed.Host
		}
		return api == u.Host || api == "api."+u.Host
	}
}

// identity returns credentials from the identity of the environment.
func identity(ctx context.Context, r cloud.GitRequest, u *url.URL) (cloud.GitCredentials, error) {
	var provider auth.GitCredentialsProvider = aws.Provider{}
	if r.Provider == cloud.Azure {
		provider = azure.Provider{}
	}
	bare := *u
	bare.User = nil
	issued, err := auth.GetGitCredentials(ctx, provider, auth.WithGitURL(bare), auth.WithAllowShellOut())
	if err != nil {
		return cloud.GitCredentials{}, err
	}
	return cloud.GitCredentials{
		// Without a session token, the user name ends in "%", which is removed.
		Credentials: cloud.Credentials{Username: strings.TrimSuffix(issued.Username, "%"), Password: issued.Password}, Token: issued.BearerToken,
	}, nil
}

// app returns an installation token of a GitHub App, as source-controller does.
func app(ctx context.Context, r cloud.GitRequest, _ *url.URL) (cloud.GitCredentials, error) {
	options := []githubapp.OptFunc{githubapp.WithAppData(r.App)}
	if ca := r.App["ca.crt"]; len(ca) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return cloud.GitCredentials{}, err
		}
		if !pool.AppendCertsFromPEM(ca) {
			return cloud.GitCredentials{}, errors.New("ca.crt contains no PEM certificate")
		}
		options = append(options, githubapp.WithTLSConfig(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	}
	if r.Proxy != "" {
		proxy, err := url.Parse(r.Proxy)
		if err != nil {
			return cloud.GitCredentials{}, errors.New("invalid proxy URL")
		}
		options = append(options, githubapp.WithProxyURL(proxy))
	}
	username, token, err := githubapp.GetCredentials(ctx, options...)
	if err != nil {
		return cloud.GitCredentials{}, fmt.Errorf("requesting a token: %w", err)
	}
	return cloud.GitCredentials{Credentials: cloud.Credentials{Username: username, Password: token}}, nil
}
