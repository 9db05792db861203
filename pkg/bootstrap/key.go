package bootstrap

import (
	"bytes"
	"context"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
	"github.com/fluxkit/flux/pkg/controllers"
)

// sourceKey is the SSH key that source-controller reads the repository with.
type sourceKey struct {
	pair sshkey.Pair
	// needsAccess is set if the user or the host has to grant the key access.
	needsAccess bool
	// replaces is set if the key replaces one that source-controller uses.
	replaces bool
	// previous is the public key that the cluster had.
	previous string
}

// keyTitle returns the title of the deploy key or token on the host. It is the
// title of Flux 2, so that a cluster that is bootstrapped again replaces its
// old key.
func (r *run) keyTitle() string {
	return strings.Join([]string{r.namespace(), r.plan.Branch, r.plan.Sync.SecretName, "./" + r.plan.Path}, "-")
}

// chooseKey uses the given key, else the one that the cluster has, else a new
// one.
func (r *run) chooseKey(ctx context.Context) error {
	if r.plan.Key.Private != nil {
		return r.useGivenKey(strings.TrimSpace(secretData(r.found.secret)[publicKey]))
	}
	if stored := secretData(r.found.secret)[identityKey]; stored != "" {
		pair, err := sshkey.Load([]byte(stored), secretData(r.found.secret)[passwordKey])
		if err != nil {
			r.progress.Warning("the key in Secret %s/%s is invalid and will be replaced: %s", r.namespace(), r.plan.Sync.SecretName, err)
			return r.generateKey(sourceKey{needsAccess: true})
		}
		r.key = sourceKey{pair: pair, needsAccess: !r.storedAccessWorks(ctx), previous: strings.TrimSpace(string(pair.Public))}
		if r.plan.RotateKey || r.key.needsAccess && r.repositoryChanged() {
			return r.generateKey(sourceKey{needsAccess: true, replaces: true, previous: r.key.previous})
		}
		return nil
	}
	return r.generateKey(sourceKey{needsAccess: true})
}

func (r *run) useGivenKey(previous string) error {
	k := r.plan.Key
	signer, err := r.signer(k.Private, k.Passphrase)
	if err != nil {
		return err
	}
	pair := sshkey.Pair{Private: k.Private, Public: ssh.MarshalAuthorizedKey(signer.PublicKey())}
	// The clone has already shown that this key has access.
	hasAccess := strings.HasPrefix(r.host.Access.URL, "ssh://") && bytes.Equal(k.Private, r.host.Access.PrivateKey)
	r.key = sourceKey{pair: pair, needsAccess: !hasAccess, previous: previous, replaces: previous != "" && previous != strings.TrimSpace(string(pair.Public))}
	return nil
}

func (r *run) generateKey(k sourceKey) (err error) {
	kind := r.plan.Key
	k.pair, err = sshkey.Generate(sshkey.Kind{Algorithm: kind.Algorithm, Bits: kind.Bits, Curve: kind.Curve})
	r.key = k
	return err
}

// repositoryChanged reports whether source-controller reads another repository
// with its key. Hosts accept a deploy key for one repository only, so the new
// repository needs a new key.
func (r *run) repositoryChanged() bool {
	at := controllers.Path{"spec.url"}.String(r.found.source)
	if at == r.host.SyncURL || !strings.HasPrefix(at, "ssh://") {
		return false
	}
	r.progress.Warning("the cluster's GitRepository has the URL %s: generating a new key for %s", redact.URL(at), redact.URL(r.host.SyncURL))
	return true
}

// grantAccess grants the cluster's key access to the repository. The user is
// asked only if the key has none; the client of a Git host checks itself
// whether the deploy key exists and has the right permissions.
func (r *run) grantAccess(ctx context.Context) error {
	if !r.plan.bySSH() || r.manualAccess() && !r.key.needsAccess {
		return nil
	}
	return r.plan.Host.DeployKey(ctx, r.deployKey(r.key.replaces))
}

func (r *run) deployKey(keepOthers bool) githost.DeployKey {
	return githost.DeployKey{Title: r.keyTitle(), Public: strings.TrimSpace(string(r.key.pair.Public)), KeepOthers: keepOthers}
}

// manualAccess reports whether the user has to grant keys access.
func (r *run) manualAccess() bool {
	_, manual := r.plan.Host.(githost.Preparer)
	return manual
}

// revokeOldKey revokes the access of the key that was replaced. It runs after
// source-controller has fetched with the new key.
func (r *run) revokeOldKey(ctx context.Context) error {
	if !r.key.replaces {
		return nil
	}
	if old, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.key.previous)); err == nil && (r.manualAccess() || r.previousURL() != r.host.SyncURL) {
		r.progress.Warning("the cluster no longer uses the key %s: revoke its access to %s", ssh.FingerprintSHA256(old), redact.URL(r.previousURL()))
	}
	if r.manualAccess() {
		return nil
	}
	return r.plan.Host.DeployKey(ctx, r.deployKey(false))
}

// previousURL returns the URL of the cluster's GitRepository before this run.
func (r *run) previousURL() string {
	if at := (controllers.Path{"spec.url"}).String(r.found.source); at != "" {
		return at
	}
	return r.host.SyncURL
}
