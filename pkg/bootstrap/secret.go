package bootstrap

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
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

// reconcileSecret gives the cluster what opens the repository. A new key is in
// the cluster before it is given access, so that one that was given access is
// the one that is used, however this run ends. One that takes the place of a
// key which works is given access first, so that the cluster never has a key
// that opens nothing.
func (r *run) reconcileSecret(ctx context.Context) error {
	if r.key.replaces {
		if err := r.giveAccess(ctx); err != nil {
			return err
		}
	}
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
	if r.key.replaces {
		return nil
	}
	return r.giveAccess(ctx)
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
