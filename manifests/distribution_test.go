package manifests

import (
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestDefinitionsAreGenerated compares the CRDs in the rendered manifests of each
// distribution, object by object and as text, with the output of controller-gen for its
// API modules. Only labels are added.
func TestDefinitionsAreGenerated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "./generate", dir).CombinedOutput(); err != nil {
		t.Fatalf("generating the CRDs: %v\n%s", err, out)
	}
	for _, d := range controllers.Distributions {
		t.Run(d.Version, func(t *testing.T) {
			t.Parallel()
			want := generated(t, os.DirFS(dir), d.Version)
			got := map[string]string{}
			for _, object := range renderVersion(t, d.Version).Unstructured() {
				if object.GetKind() == "CustomResourceDefinition" {
					got[object.GetName()] = withoutLabels(t, object, d.Version)
				}
			}
			if len(got) != len(controllers.Kinds) {
				t.Errorf("%d CRDs of %d kinds", len(got), len(controllers.Kinds))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("run `make manifests`; CRDs (-generated now +rendered):\n%s", diff)
			}
		})
	}
}

// generated returns the CRDs of a version by name.
func generated(t *testing.T, files fs.FS, version string) map[string]string {
	t.Helper()
	names, err := fs.Glob(files, version+"/*")
	if err != nil {
		t.Fatal(err)
	}
	crds := map[string]string{}
	for _, name := range names {
		data, err := decompress(files, name)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(data)
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s has %d objects: %v", name, len(objects), err)
		}
		crds[objects[0].GetName()] = string(data)
	}
	return crds
}

// withoutLabels returns the text of a CRD without its labels, after checking them.
func withoutLabels(t *testing.T, crd *unstructured.Unstructured, version string) string {
	t.Helper()
	labels := map[string]string{
		"app.kubernetes.io/component": crd.GetLabels()["app.kubernetes.io/component"],
		"app.kubernetes.io/instance":  "flux-system",
		"app.kubernetes.io/part-of":   "flux",
		"app.kubernetes.io/version":   "v" + version,
	}
	if diff := cmp.Diff(labels, crd.GetLabels()); diff != "" {
		t.Errorf("%s labels (-want +rendered):\n%s", id(crd), diff)
	}
	crd.SetLabels(nil)
	data, err := yaml.Marshal(crd.Object)
	if err != nil {
		t.Fatal(err)
	}
	return "---\n" + string(data)
}

// TestDistributionsDiffer compares the objects of each distribution, except for CRDs,
// with the recorded ones: only their versions and the listed fields may differ.
func TestDistributionsDiffer(t *testing.T) {
	t.Parallel()
	tests := map[string]map[string]func(*unstructured.Unstructured){
		"2.10.0": {
			"ClusterRole/crd-controller-flux-system": func(o *unstructured.Unstructured) {
				rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
				kept := rules[:0]
				for _, rule := range rules {
					if resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources"); !strings.HasPrefix(strings.Join(resources, ","), "serviceaccounts/") {
						kept = append(kept, rule)
					}
				}
				o.Object["rules"] = kept
			},
			"Deployment/source-controller": func(o *unstructured.Unstructured) {
				containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				containers[0].(map[string]any)["readinessProbe"] = map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": "healthz"}}
				_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
			},
		},
		"2.9.6": {},
		"2.8.8": {
			"NetworkPolicy/allow-webhooks": func(o *unstructured.Unstructured) {
				ingress, _, _ := unstructured.NestedSlice(o.Object, "spec", "ingress")
				delete(ingress[0].(map[string]any), "ports")
				_ = unstructured.SetNestedSlice(o.Object, ingress, "spec", "ingress")
			},
		},
	}
	for _, d := range controllers.Distributions {
		t.Run(d.Version, func(t *testing.T) {
			t.Parallel()
			changes, listed := tests[d.Version]
			if !listed {
				t.Fatalf("no row for Flux %s", d.Version)
			}
			var got []*unstructured.Unstructured
			for _, object := range renderVersion(t, d.Version).Unstructured() {
				if object.GetKind() != "CustomResourceDefinition" {
					got = append(got, object)
				}
			}
			want := recording(t, d)
			if diff := cmp.Diff(ids(want), ids(got)); diff != "" {
				t.Fatalf("objects and their order (-recorded +rendered):\n%s", diff)
			}
			for i := range want {
				if change := changes[id(want[i])]; change != nil {
					before := want[i].DeepCopy()
					change(want[i])
					if cmp.Equal(before.Object, want[i].Object) {
						t.Errorf("%s: the listed change changes nothing", id(want[i]))
					}
				}
				if diff := cmp.Diff(want[i].Object, got[i].Object); diff != "" {
					t.Errorf("%s (-recorded +rendered):\n%s", id(want[i]), diff)
				}
			}
		})
	}
}

// TestDistributionsServeTheCatalog compares the versions of each row with the CRDs:
// requests are sent first to the version that the default distribution stores, and
// manifests have the newest version that every distribution serves.
func TestDistributionsServeTheCatalog(t *testing.T) {
	t.Parallel()
	portable := map[string][]string{}
	for _, k := range controllers.Kinds {
		portable[k.CRD()] = append([]string{k.Version}, k.Older...)
	}
	for _, d := range controllers.Distributions {
		served, stored := crdVersions(t, d.Version)
		for crd := range portable {
			portable[crd] = slices.DeleteFunc(portable[crd], func(version string) bool { return !slices.Contains(served[crd], version) })
		}
		if d.Version != controllers.DefaultVersion {
			continue
		}
		for _, k := range controllers.Kinds {
			if stored[k.CRD()] != k.Version {
				t.Errorf("Flux %s stores %s in %s, not in %s", d.Version, k.CRD(), stored[k.CRD()], k.Version)
			}
		}
	}
	for _, k := range controllers.Kinds {
		if common := portable[k.CRD()]; len(common) == 0 || k.Group+"/"+common[0] != controllers.PortableAPIVersion(k) {
			t.Errorf("all distributions serve %s in %v, and manifests are exported in %s", k.CRD(), common, controllers.PortableAPIVersion(k))
		}
	}
}

// crdVersions returns the served and stored versions of each CRD in a Flux version.
func crdVersions(t *testing.T, version string) (served map[string][]string, stored map[string]string) {
	t.Helper()
	served, stored = map[string][]string{}, map[string]string{}
	for _, object := range renderVersion(t, version).Unstructured() {
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, v := range versions {
			v, _ := v.(map[string]any)
			name, _ := v["name"].(string)
			if v["served"] == true {
				served[object.GetName()] = append(served[object.GetName()], name)
			}
			if v["storage"] == true {
				stored[object.GetName()] = name
			}
		}
	}
	return served, stored
}

func renderVersion(t *testing.T, version string) *Set {
	t.Helper()
	o := allOptions()
	o.Version = version
	return mustRender(t, o)
}
