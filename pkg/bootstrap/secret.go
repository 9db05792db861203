package bootstrap

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The keys of a source Secret, as source-controller reads them.
const (
	usernameKey   = "username"
	passwordKey   = "password"
	bearerKey     = "bearerToken"
	caKey         = "ca.crt"
	identityKey   = "identity"
	publicKey     = "identity.pub"
	knownHostsKey = "known_hosts"
)

// sourceKey is the key by which the cluster reads the repository over SSH.
type sourceKey struct {
	pair sshkey.Pair
	// ask says that a person or the host has to give the key access.
	ask bool
}

// deployToken is what a host has made for the cluster.
type deployToken struct{ username, token string }

// keyTitle names the cluster's key, and its token, to people.
func (r *run) keyTitle() string {
	return r.namespace() + "-" + r.plan.Branch + "-" + strings.ReplaceAll(r.plan.Path, "/", "-")
}

// wantedSecret returns what the source Secret is to hold.
func (r *run) wantedSecret() map[string]string {
	a := r.host.Access
	if r.plan.bySSH() {
		data := map[string]string{
			identityKey: string(r.key.pair.Private), publicKey: string(r.key.pair.Public), knownHostsKey: r.knownHosts,
		}
		if r.plan.Key.Private != nil && r.plan.Key.Passphrase != "" {
			data[passwordKey] = r.plan.Key.Passphrase
		}
		return data
	}
	data := map[string]string{}
	switch {
	case r.plan.DeployToken:
		data[usernameKey], data[passwordKey] = r.deployed.username, r.deployed.token
	case a.BearerToken != "":
		data[bearerKey] = a.BearerToken
	default:
		data[usernameKey], data[passwordKey] = a.Username, a.Password
	}
	if len(a.CABundle) > 0 {
		data[caKey] = string(a.CABundle)
	}
	return data
}

// chooseKey takes the given key, else the one that the cluster has already,
// else a new one.
func (r *run) chooseKey(ctx context.Context) error {
	k := r.plan.Key
	if k.Private != nil {
		signer, err := r.unlock(k.Private, k.Passphrase)
		if err != nil {
			return err
		}
		// The key that has just opened the repository over SSH needs nobody's help.
		opened := strings.HasPrefix(r.host.Access.URL, "ssh://") && bytes.Equal(k.Private, r.host.Access.PrivateKey)
		r.key = sourceKey{sshkey.Pair{Private: k.Private, Public: ssh.MarshalAuthorizedKey(signer.PublicKey())}, !opened}
		return nil
	}
	if stored := secretData(r.found.secret)[identityKey]; stored != "" {
		pair, err := sshkey.Load([]byte(stored), secretData(r.found.secret)[passwordKey])
		if err == nil {
			r.key = sourceKey{pair, !r.opens(ctx)}
			return nil
		}
		r.say.Warning("the key in Secret %s/%s cannot be used and is replaced: %s", r.namespace(), r.plan.Sync.SecretName, err)
	}
	pair, err := sshkey.Generate(sshkey.Kind{Algorithm: k.Algorithm, Bits: k.Bits, Curve: k.Curve})
	r.key = sourceKey{pair, true}
	return err
}

// identify asks the SSH server of the sync address who it is. A server that
// shows another key than the cluster knows is not trusted.
func (r *run) identify(shown sshkey.HostKey) error {
	stored := []byte(secretData(r.found.secret)[knownHostsKey])
	known, other := sshkey.Known(stored, shown)
	if other {
		return failure(fmt.Sprintf("if the server's key was changed on purpose, remove the old one: kubectl -n %s delete secret %s", r.namespace(), r.plan.Sync.SecretName),
			"%s shows the host key %s, which is not the one in Secret %s/%s: somebody may be listening in",
			shown.Address, shown.Fingerprint(), r.namespace(), r.plan.Sync.SecretName)
	}
	if known {
		r.knownHosts = string(stored)
		return nil
	}
	r.say.Success("host key of %s: %s %s", shown.Address, shown.Type(), shown.Fingerprint())
	r.knownHosts = shown.Line() + "\n"
	return nil
}

// sshAddress is the host and port of an SSH address.
func sshAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return sshkey.Address(u.Host), nil
}

func (r *run) reconcileSecret(ctx context.Context) error {
	name := r.plan.Sync.SecretName
	r.say.Action("determining if source secret %q exists", r.namespace()+"/"+name)
	if err := r.makeToken(ctx); err != nil {
		return err
	}
	wanted := r.wantedSecret()
	if maps.Equal(secretData(r.found.secret), wanted) {
		r.say.Success("source secret up to date")
	} else {
		r.say.Action("generating source secret")
		r.say.Action("applying source secret %q", r.namespace()+"/"+name)
		if err := r.writeSecret(ctx, name, "Opaque", wanted); err != nil {
			return err
		}
		r.secretChanged = true
		r.say.Success("reconciled source secret")
	}
	if !r.plan.bySSH() {
		return nil
	}
	// A person is asked only where it is needed; a host finds out itself
	// whether the key is there and may do no more and no less than it should.
	if _, person := r.plan.Host.(githost.Preparer); person && !r.key.ask {
		return nil
	}
	// The key is in the cluster before it is shown, so that one that was given
	// access is the one that is used, however this run ends.
	return r.plan.Host.DeployKey(ctx, githost.DeployKey{Title: r.keyTitle(), Public: strings.TrimSpace(string(r.key.pair.Public))})
}

// writeSecret makes a Secret hold the data and nothing else.
func (r *run) writeSecret(ctx context.Context, name, typ string, data map[string]string) error {
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": typ, "data": encoded,
		"metadata": map[string]any{"name": name, "namespace": r.namespace()},
	}}
	if err := r.client.Apply(ctx, []*unstructured.Unstructured{secret}); err != nil {
		return err
	}
	// What an earlier run or another tool left would be read too.
	left := map[string]any{}
	for key := range secretData(r.found.secret) {
		if _, wanted := data[key]; !wanted {
			left[key] = nil
		}
	}
	if len(left) == 0 {
		return nil
	}
	_, err := r.client.Merge(ctx, secretResource(), r.namespace(), name, map[string]any{"data": left})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing %s from Secret %s/%s: %w", strings.Join(slices.Sorted(maps.Keys(left)), ", "), r.namespace(), name, err)
	}
	return nil
}

// secretData returns what a Secret holds, decoded; nothing for no Secret.
func secretData(o controllers.Object) map[string]string {
	data, _ := o["data"].(map[string]any)
	decoded := map[string]string{}
	for key, value := range data {
		text, _ := value.(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue // the server does not let others in
		}
		decoded[key] = string(plain)
	}
	return decoded
}

func secretResource() kube.Resource {
	return kube.Guess(coreKind("Secret"))
}
