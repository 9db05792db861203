package bootstrap

import (
	"context"
	"fmt"
	"net/url"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
	"github.com/fluxkit/flux/pkg/controllers"
)

// storedAccessWorks reports whether the credentials in the source Secret have
// read access to the repository. It tries them from this machine. If the server
// cannot be reached, the Ready condition of the GitRepository decides.
func (r *run) storedAccessWorks(ctx context.Context) bool {
	if !r.hosted.Exists {
		return false
	}
	secret := fmt.Sprintf("Secret %s/%s", r.namespace(), r.plan.Sync.SecretName)
	remote, err := r.storedRemote()
	if err == nil {
		err = remote.Probe(ctx)
	}
	switch {
	case err == nil:
		return true
	case gitrepo.AccessDenied(err):
		if r.plan.DeployToken {
			r.progress.Warning("the token in %s has no access to the repository and will be replaced", secret)
		} else {
			r.progress.Warning("the key in %s has no access to the repository yet", secret)
		}
		return false
	default:
		return isReady("GitRepository", r.found.source) && controllers.Path{"spec.url"}.String(r.found.source) == r.host.SyncURL
	}
}

// storedRemote returns the repository with the credentials of the source Secret.
func (r *run) storedRemote() (gitrepo.Remote, error) {
	data := secretData(r.found.secret)
	remote := gitrepo.Remote{URL: r.host.SyncURL, CABundle: []byte(data[caKey])}
	if !r.plan.bySSH() {
		remote.Auth = gitrepo.Basic(data[usernameKey], data[passwordKey])
		return remote, nil
	}
	u, err := url.Parse(r.host.SyncURL)
	if err != nil {
		return remote, err
	}
	signer, err := sshkey.Signer([]byte(data[identityKey]), data[passwordKey])
	if err != nil {
		return remote, err
	}
	remote.Auth = gitrepo.SSH(u.User.Username(), func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, r.hostKey.PublicKey)
	return remote, nil
}

// deployToken is a token that a host created for the cluster.
type deployToken struct{ username, token string }

// prepareToken keeps the deploy token in the source Secret while it works,
// because hosts return a token only once.
func (r *run) prepareToken(ctx context.Context) error {
	if !r.plan.DeployToken {
		return nil
	}
	data := secretData(r.found.secret)
	if data[usernameKey] != "" && data[passwordKey] != "" && !r.plan.RotateKey && r.storedAccessWorks(ctx) {
		r.deployed = deployToken{data[usernameKey], data[passwordKey]}
	}
	return nil
}

// createToken creates a deploy token on the host if the cluster has none that
// works.
func (r *run) createToken(ctx context.Context) (err error) {
	host, ok := r.plan.Host.(githost.Tokener)
	if !r.plan.DeployToken || !ok || r.deployed.token != "" {
		return nil
	}
	r.progress.Action("creating a deploy token")
	r.deployed.username, r.deployed.token, err = host.DeployToken(ctx, r.keyTitle())
	return err
}
