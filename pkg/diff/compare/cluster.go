package compare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// Settings holds the flags of kustomize-controller that affect a reconciliation.
type Settings struct {
	// account is the ServiceAccount of Kustomizations without one.
	account string
	// ageSecret is the Secret with the default age keys in the namespace of
	// the controllers.
	ageSecret string
	// overridden lists the field managers whose fields are taken over.
	overridden []string
}

// liveWithSettings reads the Kustomization and, concurrently, the flags of the
// controller. The flags are optional: users often have no permission to read
// the Deployment.
func (c *Comparer) liveWithSettings(ctx context.Context, client *kube.Client, namespace, name string) (*unstructured.Unstructured, Settings, error) {
	var live *unstructured.Unstructured
	var settings Settings
	var g errgroup.Group
	g.Go(func() (err error) {
		live, err = c.LiveObject(ctx, controllers.Kustomization, namespace, name)
		return err
	})
	g.Go(func() error {
		o, err := deployment(ctx, client, c.FluxNamespace, "kustomize-controller")
		if err == nil {
			settings = settingsOf(o)
		}
		return nil
	})
	err := g.Wait()
	return live, settings, err
}

// deployment returns the Deployment of a controller.
func deployment(ctx context.Context, client *kube.Client, namespace, name string) (controllers.Object, error) {
	return client.Get(ctx, kube.ResourceFor(schema.FromAPIVersionAndKind("apps/v1", "Deployment")), namespace, name)
}

// controllerVersion returns a function that reads the image tag of a controller once, or "" if its
// Deployment cannot be read.
func controllerVersion(client *kube.Client, namespace, name string) func(context.Context) string {
	var mu sync.Mutex
	var tag *string
	return func(ctx context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		if tag == nil {
			o, err := deployment(ctx, client, namespace, name)
			if ctx.Err() != nil {
				return ""
			}
			text := ""
			if err == nil {
				text = controllers.ImageTag(controllers.Path{"spec.template.spec.containers[0].image"}.String(o))
			}
			tag = &text
		}
		return *tag
	}
}

// settingsOf parses the flags of the controller in its Deployment.
func settingsOf(deployment controllers.Object) Settings {
	var s Settings
	known := map[string]func(string){
		"default-service-account": func(value string) { s.account = value },
		"sops-age-secret":         func(value string) { s.ageSecret = value },
		"override-manager":        func(value string) { s.overridden = append(s.overridden, value) },
	}
	containers, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	for _, container := range containers {
		m, _ := container.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(m, "args")
		for i, arg := range args {
			name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if set := known[name]; set != nil && strings.HasPrefix(arg, "-") {
				if !joined && i+1 < len(args) {
					value = args[i+1]
				}
				set(value)
			}
		}
	}
	return s
}

// clusterOf returns the configuration of the cluster that a Kustomization
// applies to: the current cluster, or the cluster in spec.kubeConfig.
func (c *Comparer) clusterOf(ctx context.Context, ks *unstructured.Unstructured, here *rest.Config) (*rest.Config, error) {
	remote, _, _ := unstructured.NestedMap(ks.Object, "spec", "kubeConfig")
	if remote == nil {
		return here, nil
	}
	name := desired.Text(ks, "spec", "kubeConfig", "secretRef", "name")
	if name == "" {
		return nil, fmt.Errorf("the Kustomization %s/%s applies to a remote cluster, but spec.kubeConfig references no Secret: only the controller can connect to the cluster", ks.GetNamespace(), ks.GetName())
	}
	secret := controllers.ID{Kind: controllers.Secret, Namespace: ks.GetNamespace(), Name: name}
	data, err := c.Data(ctx, secret)
	if apierrors.IsForbidden(err) {
		return nil, hint.Errorf("permission to read the Secret is required: it contains the kubeconfig of the remote cluster", "reading the kubeconfig of %s: %s", secret, err)
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
	return nil, fmt.Errorf("%s has no kubeconfig in key %q", secret, keys[0])
}

// remoteConfig parses a kubeconfig that was read from a cluster. It rejects exec plugins and file
// references: otherwise, anyone with write access to the Secret could run programs and read files
// on this machine.
func remoteConfig(content []byte) (*rest.Config, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, errors.New("invalid kubeconfig") // the error of the parser may quote credentials
	}
	files := cfg.BearerTokenFile + cfg.CAFile + cfg.CertFile + cfg.KeyFile
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil || files != "" {
		return nil, errors.New("exec plugins and file references are not allowed in a kubeconfig from a cluster")
	}
	return cfg, nil
}
