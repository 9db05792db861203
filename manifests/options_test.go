package manifests

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

type objects = []*unstructured.Unstructured

func TestDefaultsInstallFourControllers(t *testing.T) {
	t.Parallel()
	want := []string{
		"Namespace/flux-system",
		"NetworkPolicy/allow-egress",
		"NetworkPolicy/allow-scraping",
		"NetworkPolicy/allow-webhooks",
		"ResourceQuota/critical-pods-flux-system",
		"ClusterRole/crd-controller-flux-system",
		"ClusterRole/flux-edit-flux-system",
		"ClusterRole/flux-view-flux-system",
		"ClusterRoleBinding/cluster-reconciler-flux-system",
		"ClusterRoleBinding/crd-controller-flux-system",
		"CustomResourceDefinition/buckets.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/externalartifacts.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/helmcharts.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/helmrepositories.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/ocirepositories.source.toolkit.fluxcd.io",
		"ServiceAccount/source-controller",
		"Service/source-controller",
		"Deployment/source-controller",
		"CustomResourceDefinition/kustomizations.kustomize.toolkit.fluxcd.io",
		"ServiceAccount/kustomize-controller",
		"Deployment/kustomize-controller",
		"CustomResourceDefinition/helmreleases.helm.toolkit.fluxcd.io",
		"ServiceAccount/helm-controller",
		"Deployment/helm-controller",
		"CustomResourceDefinition/alerts.notification.toolkit.fluxcd.io",
		"CustomResourceDefinition/providers.notification.toolkit.fluxcd.io",
		"CustomResourceDefinition/receivers.notification.toolkit.fluxcd.io",
		"ServiceAccount/notification-controller",
		"Service/notification-controller",
		"Service/webhook-receiver",
		"Deployment/notification-controller",
	}
	set := mustRender(t, Defaults())
	if diff := cmp.Diff(want, ids(set.Unstructured())); diff != "" {
		t.Errorf("objects (-want +rendered):\n%s", diff)
	}
	if diff := cmp.Diff(controllers.Defaults(), set.Components); diff != "" {
		t.Errorf("components (-want +rendered):\n%s", diff)
	}
}

// TestEachOption renders all components with one option changed, and checks that the
// result differs from the contract by exactly the expected change.
func TestEachOption(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		set  func(*Options)
		want func(objects) objects
	}{
		"version": {
			func(o *Options) { o.Version = controllers.DefaultVersion },
			func(all objects) objects { return all },
		},
		"version with v": {
			func(o *Options) { o.Version = "v" + controllers.DefaultVersion },
			func(all objects) objects { return all },
		},
		"namespace": {
			func(o *Options) { o.Namespace = "gitops" },
			func(all objects) objects { return replaced(all, "flux-system", "gitops") },
		},
		"namespace that YAML would take for a number": {
			func(o *Options) { o.Namespace = "007" },
			func(all objects) objects { return replaced(all, "flux-system", "007") },
		},
		"registry": {
			func(o *Options) { o.Registry = "registry.internal:5000/mirror/flux" },
			func(all objects) objects {
				return replaced(all, "ghcr.io/fluxcd/", "registry.internal:5000/mirror/flux/")
			},
		},
		"image pull secret": {
			func(o *Options) { o.ImagePullSecret = "regcred" },
			func(all objects) objects {
				return pods(all, func(_ string, spec map[string]any) {
					spec["imagePullSecrets"] = []any{map[string]any{"name": "regcred"}}
				})
			},
		},
		"one namespace watched": {
			func(o *Options) { o.WatchAllNamespaces = false },
			func(all objects) objects {
				return replaced(all, "--watch-all-namespaces=true", "--watch-all-namespaces=false")
			},
		},
		"no network policy": {
			func(o *Options) { o.NetworkPolicy = false },
			func(all objects) objects {
				return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == "NetworkPolicy" })
			},
		},
		"log level": {
			func(o *Options) { o.LogLevel = "debug" },
			func(all objects) objects { return replaced(all, "--log-level=info", "--log-level=debug") },
		},
		"cluster domain": {
			func(o *Options) { o.ClusterDomain = "corp.example" },
			func(all objects) objects { return replaced(all, ".svc.cluster.local.", ".svc.corp.example.") },
		},
		"toleration keys": {
			func(o *Options) { o.TolerationKeys = []string{"dedicated", "example.com/flux"} },
			func(all objects) objects {
				return pods(all, func(_ string, spec map[string]any) {
					spec["tolerations"] = []any{
						map[string]any{"key": "dedicated", "operator": "Exists"},
						map[string]any{"key": "example.com/flux", "operator": "Exists"},
					}
				})
			},
		},
		"component named twice": {
			func(o *Options) { o.Components = append(o.Components, "source-controller") },
			func(all objects) objects { return all },
		},
		"without notification-controller": {
			func(o *Options) { o.Components = without(o.Components, "notification-controller") },
			func(all objects) objects {
				all = slices.DeleteFunc(all, ofComponent("notification-controller"))
				return replaced(all, "--events-addr=http://notification-controller.$(RUNTIME_NAMESPACE).svc.cluster.local./", "--events-addr=")
			},
		},
		"without source-watcher": {
			func(o *Options) { o.Components = without(o.Components, "source-watcher") },
			func(all objects) objects {
				all = slices.DeleteFunc(all, ofComponent("source-watcher"))
				return pods(all, func(_ string, spec map[string]any) {
					container := spec["containers"].([]any)[0].(map[string]any)
					container["args"] = slices.DeleteFunc(container["args"].([]any), func(arg any) bool {
						return arg == "--feature-gates=ExternalArtifact=true"
					})
				})
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := allOptions()
			test.set(&o)
			want := test.want(renderAll(t).Unstructured())
			got := mustRender(t, o).Unstructured()
			if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
				t.Errorf("objects (-want +rendered):\n%s", diff)
			}
		})
	}
}

func TestComponentsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	o := Defaults()
	o.NetworkPolicy = false
	o.Components = []string{"kustomize-controller", "source-watcher", "kustomize-controller"}
	set := mustRender(t, o)
	want := []string{
		"CustomResourceDefinition/kustomizations.kustomize.toolkit.fluxcd.io",
		"ServiceAccount/kustomize-controller",
		"Deployment/kustomize-controller",
		"CustomResourceDefinition/artifactgenerators.source.extensions.fluxcd.io",
		"ServiceAccount/source-watcher",
		"Service/source-watcher",
		"Deployment/source-watcher",
	}
	if diff := cmp.Diff(want, ids(set.Unstructured())[7:]); diff != "" {
		t.Errorf("objects after the roles (-want +rendered):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"kustomize-controller", "source-watcher"}, set.Components); diff != "" {
		t.Errorf("components (-want +rendered):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	label := "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " +
		"and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', " +
		"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	subdomain := "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
		"and must start and end with an alphanumeric character (e.g. 'example.com', " +
		"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	qualified := "name part must consist of alphanumeric characters, '-', '_' or '.', " +
		"and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', " +
		"regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	tests := map[string]struct {
		set  func(*Options)
		want string
	}{
		"no component": {func(o *Options) { o.Components = nil }, "no component selected"},
		"unknown component": {
			func(o *Options) { o.Components = []string{"source-controller", "sauce-controller"} },
			`unknown component "sauce-controller": the components are source-controller, kustomize-controller, helm-controller, ` +
				`notification-controller, image-reflector-controller, image-automation-controller, source-watcher`,
		},
		"other version": {
			func(o *Options) { o.Version = "v9.9.9" },
			`another version of Flux: Flux ` + strings.Join(controllers.EmbeddedVersions(), ", ") +
				` are embedded, not "v9.9.9"`,
		},
		"namespace":          {func(o *Options) { o.Namespace = "Flux_System" }, `invalid namespace "Flux_System": ` + label},
		"no namespace":       {func(o *Options) { o.Namespace = "" }, `invalid namespace "": ` + label},
		"cluster domain":     {func(o *Options) { o.ClusterDomain = "cluster.local." }, `invalid cluster domain "cluster.local.": ` + subdomain},
		"log level":          {func(o *Options) { o.LogLevel = "trace" }, `invalid log level "trace": must be one of debug, info, error`},
		"no registry":        {func(o *Options) { o.Registry = "" }, "no registry"},
		"registry as URL":    {func(o *Options) { o.Registry = "https://ghcr.io/fluxcd" }, `invalid registry "https://ghcr.io/fluxcd": omit the scheme, as in ghcr.io/fluxcd`},
		"registry and slash": {func(o *Options) { o.Registry = "ghcr.io/fluxcd/" }, `invalid registry "ghcr.io/fluxcd/": must be a host and a path, as in ghcr.io/fluxcd`},
		"registry and quote": {func(o *Options) { o.Registry = "ghcr.io/\"\nx: y" }, `invalid registry "ghcr.io/\"\nx: y": must be a host and a path, as in ghcr.io/fluxcd`},
		"pull secret":        {func(o *Options) { o.ImagePullSecret = "reg/cred" }, `invalid image pull secret "reg/cred": ` + subdomain},
		"toleration key":     {func(o *Options) { o.TolerationKeys = []string{"ok", "not ok"} }, `invalid toleration key "not ok": ` + qualified},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Defaults()
			test.set(&o)
			set, err := Render(o)
			if err == nil {
				t.Fatalf("rendered %d objects, want an error", len(set.objects))
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if other := name == "other version"; errors.Is(err, ErrOtherVersion) != other {
				t.Errorf("is ErrOtherVersion: %t, want %t", !other, other)
			}
		})
	}
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

// TestProfilesMatchCatalog checks that there is a row for every controller.
func TestProfilesMatchCatalog(t *testing.T) {
	t.Parallel()
	var names []string
	for _, row := range profiles {
		names = append(names, row.Name)
	}
	if diff := cmp.Diff(controllers.Names(func(controllers.Controller) bool { return true }), names); diff != "" {
		t.Errorf("controllers (-catalog +profiles):\n%s", diff)
	}
}

func ofComponent(name string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return o.GetLabels()["app.kubernetes.io/component"] == name }
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// pods changes the pods of all Deployments.
func pods(all objects, change func(name string, spec map[string]any)) objects {
	for _, o := range all {
		if o.GetKind() == "Deployment" {
			spec := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			change(o.GetName(), spec)
		}
	}
	return all
}

// replaced replaces a text in all values.
func replaced(all objects, from, to string) objects {
	var walk func(any) any
	walk = func(value any) any {
		switch value := value.(type) {
		case map[string]any:
			for key, inner := range value {
				if key != "description" { // of a field of a CRD
					value[key] = walk(inner)
				}
			}
		case []any:
			for i, inner := range value {
				value[i] = walk(inner)
			}
		case string:
			return strings.ReplaceAll(value, from, to)
		}
		return value
	}
	for _, o := range all {
		walk(o.Object)
	}
	return all
}

func plain(all objects) []map[string]any {
	maps := make([]map[string]any, len(all))
	for i, o := range all {
		maps[i] = o.Object
	}
	return maps
}
