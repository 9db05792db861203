package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/pkg/build"
)

// clusterOf is the cluster that a Kustomization applies to: the one it is on,
// or that of the kubeconfig in its spec. It must not be compared with another.
func (a *app) clusterOf(ctx context.Context, ks *unstructured.Unstructured, here *rest.Config) (*rest.Config, error) {
	remote, _, _ := unstructured.NestedMap(ks.Object, "spec", "kubeConfig")
	if remote == nil {
		return here, nil
	}
	name := text(ks, "spec", "kubeConfig", "secretRef", "name")
	if name == "" {
		return nil, fmt.Errorf("the Kustomization %s/%s applies to another cluster, which spec.kubeConfig reaches without a Secret: only the controller can", ks.GetNamespace(), ks.GetName())
	}
	secret := build.Reference{Kind: "Secret", Namespace: ks.GetNamespace(), Name: name}
	data, err := a.clusterData(ctx, secret)
	if apierrors.IsForbidden(err) {
		return nil, hinted("that cluster is reached by what the Secret holds", "reading the kubeconfig of %s: %s", secret, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", secret, err)
	}
	keys := []string{"value", "value.yaml"}
	if key := text(ks, "spec", "kubeConfig", "secretRef", "key"); key != "" {
		keys = []string{key}
	}
	for _, key := range keys {
		if content := data[key]; len(content) > 0 {
			cfg, err := remoteConfig(content)
			if err != nil {
				return nil, fmt.Errorf("reading the kubeconfig of %s: %w", secret, err)
			}
			cfg.UserAgent = here.UserAgent
			cfg.WarningHandler = here.WarningHandler
			return cfg, nil
		}
	}
	return nil, fmt.Errorf("%s has no kubeconfig under %q", secret, keys[0])
}

// remoteConfig reads a kubeconfig that came from a cluster. It may neither run
// programs nor read files here: whoever can write that Secret could otherwise
// do so on this machine.
func remoteConfig(content []byte) (*rest.Config, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, errors.New("it is malformed") // the error may quote it
	}
	files := cfg.BearerTokenFile + cfg.CAFile + cfg.CertFile + cfg.KeyFile
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil || files != "" {
		return nil, errors.New("it runs programs or names files, which is not done for a kubeconfig out of a cluster")
	}
	return cfg, nil
}
