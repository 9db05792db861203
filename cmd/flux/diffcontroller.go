package main

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// controllerSettings are flags of kustomize-controller that decide what it does.
type controllerSettings struct {
	// account is the service account of Kustomizations that name none.
	account string
	// ageSecret is the Secret with the age keys for what no other key decrypts,
	// in the controllers' namespace.
	ageSecret string
}

// liveWithSettings reads the Kustomization, and, at the same time, the flags
// of the controller. Who may not see these goes on without.
func (a *app) liveWithSettings(ctx context.Context, client *kube.Client, namespace, name string) (*unstructured.Unstructured, controllerSettings, error) {
	var live *unstructured.Unstructured
	var settings controllerSettings
	var g errgroup.Group
	g.Go(func() (err error) {
		live, err = a.liveObject(ctx, "Kustomization", namespace, name)
		return err
	})
	g.Go(func() error {
		deployments := kube.Guess(schema.FromAPIVersionAndKind("apps/v1", "Deployment"))
		o, err := client.Get(ctx, deployments, a.fluxNamespace(), "kustomize-controller")
		if err == nil {
			settings = settingsOf(o)
		}
		return nil
	})
	err := g.Wait()
	return live, settings, err
}

// settingsOf reads the flags of the controller out of its Deployment.
func settingsOf(deployment controllers.Object) controllerSettings {
	var s controllerSettings
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
