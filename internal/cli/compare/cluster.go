package compare

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Settings are flags of kustomize-controller that decide what it does.
type Settings struct {
	// account is the service account of Kustomizations that name none.
	account string
	// ageSecret is the Secret with the age keys for what no other key decrypts,
	// in the controllers' namespace.
	ageSecret string
}

// liveWithSettings reads the Kustomization, and, at the same time, the flags
// of the controller. Who may not see these goes on without.
func liveWithSettings(ctx context.Context, a *app.App, client *kube.Client, namespace, name string) (*unstructured.Unstructured, Settings, error) {
	var live *unstructured.Unstructured
	var settings Settings
	var g errgroup.Group
	g.Go(func() (err error) {
		live, err = desired.LiveObject(ctx, a, "Kustomization", namespace, name)
		return err
	})
	g.Go(func() error {
		deployments := kube.ResourceFor(schema.FromAPIVersionAndKind("apps/v1", "Deployment"))
		o, err := client.Get(ctx, deployments, a.FluxNamespace(), "kustomize-controller")
		if err == nil {
			settings = settingsOf(o)
		}
		return nil
	})
	err := g.Wait()
	return live, settings, err
}

// settingsOf reads the flags of the controller out of its Deployment.
func settingsOf(deployment controllers.Object) Settings {
	var s Settings
	known := map[string]*string{"default-service-account": &s.account, "sops-age-secret": &s.ageSecret}
	containers, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	for _, c := range containers {
		m, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(m, "args")
		for i, arg := range args {
			name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if into := known[name]; into != nil && strings.HasPrefix(arg, "-") {
				if !joined && i+1 < len(args) {
					value = args[i+1]
				}
				*into = value
			}
		}
	}
	return s
}

// clusterOf is the cluster that a Kustomization applies to: the one it is on,
// or that of the kubeconfig in its spec. It must not be compared with another.
func clusterOf(ctx context.Context, a *app.App, ks *unstructured.Unstructured, here *rest.Config) (*rest.Config, error) {
	remote, _, _ := unstructured.NestedMap(ks.Object, "spec", "kubeConfig")
	if remote == nil {
		return here, nil
	}
	name := desired.Text(ks, "spec", "kubeConfig", "secretRef", "name")
	if name == "" {
		return nil, fmt.Errorf("the Kustomization %s/%s applies to another cluster, which spec.kubeConfig reaches without a Secret: only the controller can", ks.GetNamespace(), ks.GetName())
	}
	secret := build.Reference{Kind: "Secret", Namespace: ks.GetNamespace(), Name: name}
	data, err := desired.ClusterData(ctx, a, secret)
	if apierrors.IsForbidden(err) {
		return nil, clierr.WithHint("that cluster is reached by what the Secret holds", "reading the kubeconfig of %s: %s", secret, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", secret, err)
	}
	keys := []string{"value", "value.yaml"}
	if key := desired.Text(ks, "spec", "kubeConfig", "secretRef", "key"); key != "" {
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
