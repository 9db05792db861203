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

// wantedSecret returns the desired data of the source Secret.
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

// reconcileSecret applies the source Secret and grants its key access to the
// repository. A new key is stored in the cluster first, so that a key with
// access is not lost if this run fails. A key that replaces a working one is
// granted access first, so that the Secret always has a key that works.
func (r *run) reconcileSecret(ctx context.Context) error {
	if r.key.replaces {
		if err := r.grantAccess(ctx); err != nil {
			return err
		}
	}
	name := r.plan.Sync.SecretName
	r.progress.Action("determining if source secret %q exists", r.namespace()+"/"+name)
	if err := r.createToken(ctx); err != nil {
		return err
	}
	wanted := r.wantedSecret()
	if maps.Equal(secretData(r.found.secret), wanted) {
		r.progress.Success("source secret up to date")
	} else {
		r.progress.Action("generating source secret")
		r.progress.Action("applying source secret %q", r.namespace()+"/"+name)
		if err := r.writeSecret(ctx, name, "Opaque", wanted); err != nil {
			return err
		}
		r.secretChanged = true
		r.progress.Success("reconciled source secret")
	}
	if r.key.replaces {
		return nil
	}
	return r.grantAccess(ctx)
}

// writeSecret applies a Secret and removes all other keys from its data.
func (r *run) writeSecret(ctx context.Context, name, typ string, data map[string]string) error {
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": typ, "data": encoded,
		"metadata": map[string]any{"name": name, "namespace": r.namespace()},
	}}
	if err := kube.Apply(ctx, r.client, []*unstructured.Unstructured{secret}); err != nil {
		return err
	}
	// source-controller would also read the keys that an earlier run or another
	// tool has added.
	extra := map[string]any{}
	for key := range secretData(r.found.secret) {
		if _, wanted := data[key]; !wanted {
			extra[key] = nil
		}
	}
	if len(extra) == 0 {
		return nil
	}
	_, err := r.client.MergePatch(ctx, secretResource(), r.namespace(), name, map[string]any{"data": extra})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing %s from Secret %s/%s: %w", strings.Join(slices.Sorted(maps.Keys(extra)), ", "), r.namespace(), name, err)
	}
	return nil
}

// secretData returns the decoded data of a Secret; empty for nil.
func secretData(o controllers.Object) map[string]string {
	data, _ := o["data"].(map[string]any)
	decoded := map[string]string{}
	for key, value := range data {
		text, _ := value.(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue // the API server does not accept such data
		}
		decoded[key] = string(plain)
	}
	return decoded
}

func secretResource() kube.Resource {
	return kube.ResourceFor(coreKind("Secret"))
}
