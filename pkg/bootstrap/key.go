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

// sourceKey is the key by which the cluster reads the repository over SSH.
type sourceKey struct {
	pair sshkey.Pair
	// ask says that a person or the host has to give the key access.
	ask bool
	// replaces says that it takes the place of a key by which the cluster fetches.
	replaces bool
	// before is the public key that the cluster had.
	before string
}

// keyTitle names the cluster's key, and its token, to people. It is the title
// that Flux 2 gives them: a cluster that is built anew replaces its old key by it.
func (r *run) keyTitle() string {
	return strings.Join([]string{r.namespace(), r.plan.Branch, r.plan.Sync.SecretName, "./" + r.plan.Path}, "-")
}

// chooseKey takes the given key, else the one that the cluster has already,
// else a new one.
func (r *run) chooseKey(ctx context.Context) error {
	before := strings.TrimSpace(secretData(r.found.secret)[publicKey])
	if r.plan.Key.Private != nil {
		return r.takeKey(before)
	}
	if stored := secretData(r.found.secret)[identityKey]; stored != "" {
		pair, err := sshkey.Load([]byte(stored), secretData(r.found.secret)[passwordKey])
		if err != nil {
			r.say.Warning("the key in Secret %s/%s cannot be used and is replaced: %s", r.namespace(), r.plan.Sync.SecretName, err)
			return r.makeKey(sourceKey{ask: true})
		}
		r.key = sourceKey{pair: pair, ask: !r.opens(ctx), before: strings.TrimSpace(string(pair.Public))}
		if r.plan.RotateKey || r.key.ask && r.moved() {
			return r.makeKey(sourceKey{ask: true, replaces: true, before: r.key.before})
		}
		return nil
	}
	return r.makeKey(sourceKey{ask: true})
}

func (r *run) takeKey(before string) error {
	k := r.plan.Key
	signer, err := r.unlock(k.Private, k.Passphrase)
	if err != nil {
		return err
	}
	pair := sshkey.Pair{Private: k.Private, Public: ssh.MarshalAuthorizedKey(signer.PublicKey())}
	// The key that has just opened the repository over SSH needs nobody's help.
	opened := strings.HasPrefix(r.host.Access.URL, "ssh://") && bytes.Equal(k.Private, r.host.Access.PrivateKey)
	r.key = sourceKey{pair: pair, ask: !opened, before: before, replaces: before != "" && before != strings.TrimSpace(string(pair.Public))}
	return nil
}

func (r *run) makeKey(k sourceKey) (err error) {
	kind := r.plan.Key
	k.pair, err = sshkey.Generate(sshkey.Kind{Algorithm: kind.Algorithm, Bits: kind.Bits, Curve: kind.Curve})
	r.key = k
	return err
}

// moved tells whether the cluster fetches another repository by its key so
// far. Hosts take a key for one repository only, so this one needs another.
func (r *run) moved() bool {
	at := controllers.Path{"spec.url"}.String(r.found.source)
	if at == r.host.SyncURL || !strings.HasPrefix(at, "ssh://") {
		return false
	}
	r.say.Warning("the cluster follows %s so far: it gets a new key for %s", redact.URL(at), redact.URL(r.host.SyncURL))
	return true
}

// giveAccess lets the cluster's key read the repository. A person is asked
// only where it is needed; a host finds out itself whether the key is there
// and may do no more and no less than it should.
func (r *run) giveAccess(ctx context.Context) error {
	if !r.plan.bySSH() || r.byPerson() && !r.key.ask {
		return nil
	}
	return r.plan.Host.DeployKey(ctx, r.deployKey(r.key.replaces))
}

func (r *run) deployKey(keepOthers bool) githost.DeployKey {
	return githost.DeployKey{Title: r.keyTitle(), Public: strings.TrimSpace(string(r.key.pair.Public)), KeepOthers: keepOthers}
}

// byPerson tells whether a person has to give keys access.
func (r *run) byPerson() bool {
	_, person := r.plan.Host.(githost.Preparer)
	return person
}

// retireKey takes away the access of a key that was replaced, now that the
// cluster has been seen to fetch by the new one.
func (r *run) retireKey(ctx context.Context) error {
	if !r.key.replaces {
		return nil
	}
	if before, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.key.before)); err == nil && (r.byPerson() || r.elsewhere()) {
		r.say.Warning("the cluster does not use the key %s any more: take its access to %s away", ssh.FingerprintSHA256(before), redact.URL(r.fetchedFrom()))
	}
	if r.byPerson() {
		return nil
	}
	return r.plan.Host.DeployKey(ctx, r.deployKey(false))
}

// fetchedFrom is the repository that the cluster followed before this run.
func (r *run) fetchedFrom() string {
	if at := (controllers.Path{"spec.url"}).String(r.found.source); at != "" {
		return at
	}
	return r.host.SyncURL
}

func (r *run) elsewhere() bool { return r.fetchedFrom() != r.host.SyncURL }
