package build_test

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/build"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	sops := base64.StdEncoding.EncodeToString([]byte("**SOPS**"))
	for name, c := range map[string]struct {
		manifest string
		secret   [][]string
		want     string
		masked   int
	}{
		"data and stringData": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: aHVudGVyMg==, b: ''}\nstringData: {c: hunter2}\ntype: Opaque", nil,
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: '*****', b: '*****'}\nstringData: {c: '*****'}\ntype: Opaque", 3,
		},
		"data that is no map": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: [hunter2]", nil,
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: '*****'", 1,
		},
		"kubectl's copy": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2, b: c}}\ndata: {a: x}", nil,
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '*****', b: c}}\ndata: {a: '*****'}", 2,
		},
		"a custom resource of the same kind": {
			"apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: x}", nil,
			"apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: x}", 0,
		},
		"a ConfigMap": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: x}", nil,
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: x}", 0,
		},
		"values out of Secrets elsewhere": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{args: [x, hunter2]}], hostname: hunter2}",
			[][]string{{"spec", "containers", "0", "args", "1"}, {"spec", "hostname"}, {"spec", "gone"}, {"spec", "containers", "7", "args"}},
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{args: [x, '*****']}], hostname: '*****'}", 2,
		},
		"an object that is a secret as a whole": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: x}\nbinaryData: {b: eA==}", [][]string{{}},
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: '*****'\nbinaryData: '*****'", 2,
		},
		"SOPS": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x}", nil,
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: " + sops + "}", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := object(t, c.manifest)
			got, masked := build.WithoutSecrets(build.Object{Unstructured: o, Secret: c.secret})
			if diff := cmp.Diff(object(t, c.want).Object, got.Object); diff != "" || masked != c.masked {
				t.Errorf("%d masked, want %d\n-want +got:\n%s", masked, c.masked, diff)
			}
			if diff := cmp.Diff(object(t, c.manifest).Object, o.Object); diff != "" {
				t.Errorf("the object itself has changed:\n%s", diff)
			}
		})
	}
}
