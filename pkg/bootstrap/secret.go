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
func (a *access) wantedSecret() map[string]string {
	if a.plan.bySSH() {
		data := map[string]string{
			identityKey: string(a.key.pair.Private), publicKey: string(a.key.pair.Public), knownHostsKey: a.knownHosts,
		}
		if a.plan.Key.Private != nil && a.plan.Key.Passphrase != "" {
			data[passwordKey] = a.plan.Key.Passphrase
		}
		return data
	}
	data, own := map[string]string{}, a.repository.Access
	switch {
	case a.plan.DeployToken:
		data[usernameKey], data[passwordKey] = a.deployed.username, a.deployed.token
	case own.BearerToken != "":
		data[bearerKey] = own.BearerToken
	default:
		data[usernameKey], data[passwordKey] = own.Username, own.Password
	}
	if len(own.CABundle) > 0 {
		data[caKey] = string(own.CABundle)
	}
	return data
}

// reconcile applies the source Secret and grants its key access to the
// repository. A new key is stored in the cluster first, so that a key with
// access is not lost if this run fails. A key that replaces a working one is
// granted access first, so that the Secret always has a key that works.
func (a *access) reconcile(ctx context.Context) error {
	if a.key.replaces {
		if err := a.grantAccess(ctx); err != nil {
			return err
		}
	}
	name := a.plan.Sync.SecretName
	a.progress.Action("determining if source secret %q exists", a.plan.namespace()+"/"+name)
	if err := a.createToken(ctx); err != nil {
		return err
	}
	wanted := a.wantedSecret()
	if maps.Equal(secretData(a.cluster.secret), wanted) {
		a.progress.Success("source secret up to date")
	} else {
		a.progress.Action("generating source secret")
		a.progress.Action("applying source secret %q", a.plan.namespace()+"/"+name)
		if err := a.writeSecret(ctx, name, "Opaque", wanted); err != nil {
			return err
		}
		a.changed = true
		a.progress.Success("reconciled source secret")
	}
	if a.key.replaces {
		return nil
	}
	return a.grantAccess(ctx)
}

// writeSecret applies a Secret and removes all other keys from its data.
func (a *access) writeSecret(ctx context.Context, name, typ string, data map[string]string) error {
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": typ, "data": encoded,
		"metadata": map[string]any{"name": name, "namespace": a.plan.namespace()},
	}}
	if err := kube.Apply(ctx, a.cluster.client, []*unstructured.Unstructured{secret}); err != nil {
		return err
	}
	// source-controller would also read the keys that an earlier run or another
	// tool has added.
	extra := map[string]any{}
	for key := range secretData(a.cluster.secret) {
		if _, wanted := data[key]; !wanted {
			extra[key] = nil
		}
	}
	if len(extra) == 0 {
		return nil
	}
	_, err := a.cluster.client.MergePatch(ctx, secretResource(), a.plan.namespace(), name, map[string]any{"data": extra})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing %s from Secret %s/%s: %w", strings.Join(slices.Sorted(maps.Keys(extra)), ", "), a.plan.namespace(), name, err)
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
			continue // the API server rejects such data
		}
		decoded[key] = string(plain)
	}
	return decoded
}

func secretResource() kube.Resource { return kube.BuiltIn("v1", "Secret") }
