package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/pkg/controllers"
)

// access grants the cluster access to the repository with a key or token that is stored in the
// source Secret and registered on the host.
type access struct {
	plan       *Plan
	progress   Progress
	cluster    *cluster
	repository *repository
	hostKeys   *hostKeys

	key sourceKey
	// deployed is the deploy token, empty if the host has not created one.
	deployed deployToken
	// knownHosts is the known_hosts entry of the source Secret.
	knownHosts string
	// changed is set if this run has changed the source Secret: the artifact was
	// then fetched with other credentials.
	changed bool
}

// sourceKey is the SSH key with which source-controller reads the repository.
type sourceKey struct {
	pair sshkey.Pair
	// needsAccess is set if the user or the host has to grant the key access.
	needsAccess bool
	// replaces is set if the key replaces one that source-controller uses.
	replaces bool
	// previous is the cluster's previous public key.
	previous string
}

// prepare chooses the key or token of the cluster, and checks that it can be
// granted access.
func (a *access) prepare(ctx context.Context) error {
	if !a.plan.bySSH() {
		return a.prepareToken(ctx)
	}
	if err := a.prepareHostKey(ctx); err != nil {
		return err
	}
	if err := a.chooseKey(ctx); err != nil {
		return err
	}
	if p, ok := a.plan.Host.(githost.Preparer); ok && a.key.needsAccess {
		return p.CanDeployKey()
	}
	return nil
}

// prepareHostKey reads and verifies the host key of the server that
// source-controller will fetch from.
func (a *access) prepareHostKey(ctx context.Context) error {
	u, err := url.Parse(a.repository.SyncURL)
	if err != nil {
		return fmt.Errorf("invalid repository SSH URL: %w", err)
	}
	key, err := a.hostKeys.scan(ctx, sshkey.Address(u.Host))
	if err != nil {
		return err
	}
	if err := a.hostKeys.checkStored(key); err != nil {
		return err
	}
	a.knownHosts = a.hostKeys.entry(key)
	return nil
}

// chooseKey uses the given key, else the key in the cluster, else a new key.
func (a *access) chooseKey(ctx context.Context) error {
	if a.plan.Key.Private != nil {
		return a.useGivenKey(strings.TrimSpace(secretData(a.cluster.secret)[publicKey]))
	}
	if stored := secretData(a.cluster.secret)[identityKey]; stored != "" {
		pair, err := sshkey.Load([]byte(stored), secretData(a.cluster.secret)[passwordKey])
		if err != nil {
			a.progress.Warning("the key in Secret %s/%s is invalid and will be replaced: %s", a.plan.namespace(), a.plan.Sync.SecretName, err)
			return a.generateKey(sourceKey{needsAccess: true})
		}
		a.key = sourceKey{pair: pair, needsAccess: !a.storedAccessWorks(ctx), previous: strings.TrimSpace(string(pair.Public))}
		if a.plan.RotateKey || a.key.needsAccess && a.repositoryChanged() {
			return a.generateKey(sourceKey{needsAccess: true, replaces: true, previous: a.key.previous})
		}
		return nil
	}
	return a.generateKey(sourceKey{needsAccess: true})
}

func (a *access) useGivenKey(previous string) error {
	k := a.plan.Key
	signer, err := a.repository.parseKey(k.Private, k.Passphrase)
	if err != nil {
		return err
	}
	pair := sshkey.Pair{Private: k.Private, Public: ssh.MarshalAuthorizedKey(signer.PublicKey())}
	// The clone has already shown that this key has access.
	hasAccess := strings.HasPrefix(a.repository.Access.URL, "ssh://") && bytes.Equal(k.Private, a.repository.Access.PrivateKey)
	a.key = sourceKey{pair: pair, needsAccess: !hasAccess, previous: previous, replaces: previous != "" && previous != strings.TrimSpace(string(pair.Public))}
	return nil
}

func (a *access) generateKey(k sourceKey) (err error) {
	kind := a.plan.Key
	k.pair, err = sshkey.Generate(sshkey.Kind{Algorithm: kind.Algorithm, Bits: kind.Bits, Curve: kind.Curve})
	a.key = k
	return err
}

// repositoryChanged reports whether source-controller reads another repository
// with its key. Hosts accept a deploy key for one repository only, so the new
// repository needs a new key.
func (a *access) repositoryChanged() bool {
	at := controllers.Path{"spec.url"}.String(a.cluster.source)
	if at == a.repository.SyncURL || !strings.HasPrefix(at, "ssh://") {
		return false
	}
	a.progress.Warning("the cluster's GitRepository has the URL %s: generating a new key for %s", redact.URL(at), redact.URL(a.repository.SyncURL))
	return true
}

// grantAccess grants the cluster's key access to the repository. It prompts the user
// only if the key has no access; the client of a Git host itself checks whether
// the deploy key exists and has the right permissions.
func (a *access) grantAccess(ctx context.Context) error {
	if !a.plan.bySSH() || a.manualAccess() && !a.key.needsAccess {
		return nil
	}
	return a.plan.Host.DeployKey(ctx, a.deployKey(a.key.replaces))
}

func (a *access) deployKey(keepOthers bool) githost.DeployKey {
	return githost.DeployKey{Title: a.plan.keyTitle(), Public: strings.TrimSpace(string(a.key.pair.Public)), KeepOthers: keepOthers}
}

// manualAccess reports whether the user has to add keys manually.
func (a *access) manualAccess() bool {
	_, manual := a.plan.Host.(githost.Preparer)
	return manual
}

// changes returns the changes on the Git host that grant the cluster
// access.
func (a *access) changes() []string {
	switch {
	case a.plan.DeployToken && a.deployed.token == "":
		return []string{fmt.Sprintf("create the deploy token %q", a.plan.keyTitle())}
	case !a.plan.bySSH() || !a.key.needsAccess:
		return nil
	case a.key.replaces:
		return []string{fmt.Sprintf("replace the deploy key %q", a.plan.keyTitle())}
	case a.manualAccess():
		return []string{"ask you to grant the cluster's key access to " + a.repository.SyncURL}
	default:
		return []string{fmt.Sprintf("add the deploy key %q", a.plan.keyTitle())}
	}
}

// revokeOldKey revokes the access of the key that was replaced. It runs after
// source-controller has fetched with the new key.
func (a *access) revokeOldKey(ctx context.Context) error {
	if !a.key.replaces {
		return nil
	}
	if old, _, _, _, err := ssh.ParseAuthorizedKey([]byte(a.key.previous)); err == nil && (a.manualAccess() || a.previousURL() != a.repository.SyncURL) {
		a.progress.Warning("the cluster no longer uses the key %s: revoke its access to %s", ssh.FingerprintSHA256(old), redact.URL(a.previousURL()))
	}
	if a.manualAccess() {
		return nil
	}
	return a.plan.Host.DeployKey(ctx, a.deployKey(false))
}

// previousURL returns the URL of the cluster's GitRepository before this run.
func (a *access) previousURL() string {
	if at := (controllers.Path{"spec.url"}).String(a.cluster.source); at != "" {
		return at
	}
	return a.repository.SyncURL
}
