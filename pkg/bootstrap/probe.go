package bootstrap

import (
	"context"
	"fmt"
	"net/url"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/pkg/controllers"
)

// storedAccessWorks reports whether the credentials in the source Secret have read access to the
// repository. It tries them from this machine. If the server is unreachable, it uses the Ready
// condition of the GitRepository instead.
func (a *access) storedAccessWorks(ctx context.Context) bool {
	if !a.repository.onHost.Exists {
		return false
	}
	secret := fmt.Sprintf("Secret %s/%s", a.plan.namespace(), a.plan.Sync.SecretName)
	stored, err := a.storedRemote()
	if err == nil {
		err = stored.Probe(ctx)
	}
	switch {
	case err == nil:
		return true
	case remote.AccessDenied(err):
		if a.plan.DeployToken {
			a.progress.Warning("the token in %s has no access to the repository and will be replaced", secret)
		} else {
			a.progress.Warning("the key in %s has no access to the repository yet", secret)
		}
		return false
	default:
		return isReady("GitRepository", a.cluster.source) && controllers.Path{"spec.url"}.String(a.cluster.source) == a.repository.SyncURL
	}
}

// storedRemote returns the repository with the credentials of the source Secret.
func (a *access) storedRemote() (remote.Repository, error) {
	data := secretData(a.cluster.secret)
	target := remote.Repository{URL: a.repository.SyncURL, CABundle: []byte(data[caKey])}
	if !a.plan.bySSH() {
		target.Auth = remote.Basic(data[usernameKey], data[passwordKey])
		return target, nil
	}
	u, err := url.Parse(a.repository.SyncURL)
	if err != nil {
		return target, err
	}
	signer, err := sshkey.Signer([]byte(data[identityKey]), data[passwordKey])
	if err != nil {
		return target, err
	}
	target.Auth = remote.SSH(u.User.Username(), func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, a.hostKeys.scanned.PublicKey)
	return target, nil
}

// deployToken is a token that a host created for the cluster.
type deployToken struct{ username, token string }

// prepareToken keeps the deploy token in the source Secret while it works,
// because hosts return a token only once.
func (a *access) prepareToken(ctx context.Context) error {
	if !a.plan.DeployToken {
		return nil
	}
	data := secretData(a.cluster.secret)
	if data[usernameKey] != "" && data[passwordKey] != "" && !a.plan.RotateKey && a.storedAccessWorks(ctx) {
		a.deployed = deployToken{data[usernameKey], data[passwordKey]}
	}
	return nil
}

// createToken creates a deploy token on the host if the cluster has none that
// works.
func (a *access) createToken(ctx context.Context) (err error) {
	host, ok := a.plan.Host.(githost.Tokener)
	if !a.plan.DeployToken || !ok || a.deployed.token != "" {
		return nil
	}
	a.progress.Action("creating a deploy token")
	a.deployed.username, a.deployed.token, err = host.DeployToken(ctx, a.plan.keyTitle())
	return err
}
