package controllers_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestManifestFieldsMatchTheAPIModules compares the tables of fields with the
// durations and the references to Secrets in the structs of the API modules.
func TestManifestFieldsMatchTheAPIModules(t *testing.T) {
	t.Parallel()
	durations, secrets := map[string]bool{}, map[string]bool{}
	for _, typ := range types {
		spec, ok := fieldNamed(reflect.TypeOf(typ.object), "spec")
		if !ok {
			t.Fatalf("%T has no spec", typ.object)
		}
		walkFields(spec, "spec", func(path string, of reflect.Type) bool {
			switch of {
			case reflect.TypeFor[metav1.Duration]():
				durations[path] = true
				return false
			case reflect.TypeFor[meta.LocalObjectReference](), reflect.TypeFor[meta.SecretKeyReference]():
				if strings.HasSuffix(path, "ecretRef") {
					secrets[path] = true
				}
			case reflect.TypeFor[meta.ValuesReference](), reflect.TypeFor[kustomizev1.SubstituteReference]():
				secrets[path] = true
			}
			return true
		})
	}
	if diff := cmp.Diff(sorted(durations), slices.Sorted(slices.Values(controllers.DurationFields()))); diff != "" {
		t.Errorf("durations: -API +table:\n%s", diff)
	}
	if diff := cmp.Diff(sorted(secrets), slices.Sorted(slices.Values(controllers.SecretFields()))); diff != "" {
		t.Errorf("Secrets: -API +table:\n%s", diff)
	}
}

func sorted(set map[string]bool) []string {
	var all []string
	for path := range set {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// walkFields calls visit with the JSON path of each field of a struct. It does
// not descend into a field for which visit returns false.
func walkFields(of reflect.Type, path string, visit func(string, reflect.Type) bool) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 {
		walkFields(of.Elem(), path+"[]", visit)
		return
	}
	if !visit(path, of) || of.Kind() != reflect.Struct {
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
		case strings.Contains(options, "inline") || f.Anonymous && name == "":
			walkFields(f.Type, path, visit)
		default:
			walkFields(f.Type, path+"."+name, visit)
		}
	}
}

// TestManifestEqualsTypedEncoding compares a manifest with the object that
// is decoded into the structs of the API and encoded again, as in Flux.
func TestManifestEqualsTypedEncoding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object string
		typed  any
	}{
		"Kustomization": {`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","spec":{
			"interval":"600s","timeout":"90s","retryInterval":"2m","path":"./a","prune":false,"force":false,"suspend":false,
			"sourceRef":{"kind":"GitRepository","name":"a"},
			"postBuild":{"substituteFrom":[{"kind":"Secret","name":"a","optional":false},{"kind":"ConfigMap","name":"b","optional":true}]}}}`,
			&kustomizev1.Kustomization{}},
		"HelmRelease": {`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","spec":{
			"interval":"1h","timeout":"3600s","chart":{"spec":{"chart":"a","interval":"60s","sourceRef":{"kind":"HelmRepository","name":"a"}}},
			"install":{"timeout":"60s","strategy":{"name":"RetryOnFailure","retryInterval":"60s"}},"upgrade":{"timeout":"60s","force":true},
			"rollback":{"timeout":"60s","force":true},"test":{"timeout":"60s"},"uninstall":{"timeout":"60s"},
			"suspend":true,"values":{"interval":"60s","suspend":false,"timeout":90}}}`, &helmv2.HelmRelease{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := json.Unmarshal([]byte(c.object), c.typed); err != nil {
				t.Fatal(err)
			}
			want := decoded(t, c.typed)
			delete(want, "status")
			o := decoded(t, json.RawMessage(c.object))
			before := decoded(t, o)
			got := controllers.Manifest(o)
			delete(want, "metadata")
			delete(got, "metadata")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-typed +manifest:\n%s", diff)
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, v any) controllers.Object {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var o controllers.Object
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestManifestKeepsUnknownFields covers fields of a newer API version, and
// metadata of tools and of the API server, which is removed.
func TestManifestKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	got := controllers.Manifest(controllers.Object{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v2", "kind": "Kustomization", "data": controllers.Object{"a": "b"},
		"metadata": controllers.Object{
			"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1", "generation": int64(3), "creationTimestamp": "x",
			"finalizers": []any{"f"}, "managedFields": []any{}, "ownerReferences": []any{},
			"labels": controllers.Object{"kustomize.toolkit.fluxcd.io/name": "flux-system"},
			"annotations": controllers.Object{
				"kubectl.kubernetes.io/last-applied-configuration": "{}", "reconcile.fluxcd.io/requestedAt": "x",
				"reconcile.fluxcd.io/forceAt": "x", "example.com/mine": "y",
			},
		},
		"spec":   controllers.Object{"newer": controllers.Object{"interval": "60s"}, "interval": "soon", "timeout": int64(60)},
		"status": controllers.Object{},
	})
	want := controllers.Object{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v2", "kind": "Kustomization", "data": controllers.Object{"a": "b"},
		"metadata": controllers.Object{
			"name": "a", "namespace": "b", "labels": controllers.Object{"kustomize.toolkit.fluxcd.io/name": "flux-system"},
			"annotations": controllers.Object{"example.com/mine": "y"},
		},
		"spec": controllers.Object{"newer": controllers.Object{"interval": "60s"}, "interval": "soon", "timeout": int64(60)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSecretsOf(t *testing.T) {
	t.Parallel()
	got := controllers.SecretsOf(controllers.Object{"spec": controllers.Object{
		"secretRef":  controllers.Object{"name": "a"},
		"sts":        controllers.Object{"certSecretRef": controllers.Object{"name": "b"}},
		"kubeConfig": controllers.Object{"secretRef": controllers.Object{"name": "c", "key": "value"}},
		"valuesFrom": []any{
			controllers.Object{"kind": "ConfigMap", "name": "d"},
			controllers.Object{"kind": "Secret", "name": "e", "optional": true},
		},
		"sync":         controllers.Object{"pullSecret": "f", "secretRef": controllers.Object{"name": "unrelated"}},
		"distribution": controllers.Object{"imagePullSecret": "g", "artifactPullSecret": ""},
	}})
	want := []controllers.SecretRef{
		{Name: "a", Field: "spec.secretRef"},
		{Name: "b", Field: "spec.sts.certSecretRef"},
		{Name: "c", Field: "spec.kubeConfig.secretRef"},
		{Name: "g", Field: "spec.distribution.imagePullSecret"},
		{Name: "f", Field: "spec.sync.pullSecret"},
		{Name: "e", Field: "spec.valuesFrom", Optional: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
