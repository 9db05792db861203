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

// opens tells whether the cluster's Secret opens the repository, by trying it
// from here. Where that cannot be found out, what the cluster says of its last
// fetch has to do.
func (r *run) opens(ctx context.Context) bool {
	if !r.hosted.Exists {
		return false
	}
	secret := fmt.Sprintf("Secret %s/%s", r.namespace(), r.plan.Sync.SecretName)
	remote, err := r.stored()
	if err == nil {
		err = remote.Probe(ctx)
	}
	switch {
	case err == nil:
		return true
	case gitrepo.Refused(err):
		if r.plan.DeployToken {
			r.say.Warning("the token in %s does not open the repository and is replaced", secret)
		} else {
			r.say.Warning("the key in %s does not open the repository: it needs to be given access", secret)
		}
		return false
	default:
		return isReady(r.found.source) && controllers.Path{"spec.url"}.String(r.found.source) == r.host.SyncURL
	}
}

// stored is how the cluster opens the repository.
func (r *run) stored() (gitrepo.Remote, error) {
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
	remote.Auth = gitrepo.SSH(u.User.Username(), func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, r.shown.PublicKey)
	return remote, nil
}

// deployToken is what a host has made for the cluster.
type deployToken struct{ username, token string }

// prepareToken keeps the token that the host has made for the cluster as long
// as it opens the repository: hosts show a token only once.
func (r *run) prepareToken(ctx context.Context) error {
	if !r.plan.DeployToken {
		return nil
	}
	data := secretData(r.found.secret)
	if data[usernameKey] != "" && data[passwordKey] != "" && !r.plan.RotateKey && r.opens(ctx) {
		r.deployed = deployToken{data[usernameKey], data[passwordKey]}
	}
	return nil
}

// makeToken has the host make a token where the cluster has none that works.
func (r *run) makeToken(ctx context.Context) (err error) {
	host, ok := r.plan.Host.(githost.Tokener)
	if !r.plan.DeployToken || !ok || r.deployed.token != "" {
		return nil
	}
	r.say.Action("making a deploy token")
	r.deployed.username, r.deployed.token, err = host.DeployToken(ctx, r.keyTitle())
	return err
}
