package build_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
)

const sealed = "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"

// rot is a Decrypter that replaces what is encrypted, and notes the formats.
type rot struct{ formats map[string]bool }

func (r rot) Decrypt(_ context.Context, _ string, document []byte, format string) ([]byte, error) {
	if bytes.Contains(document, []byte("no-key")) {
		return nil, errors.New("no key available")
	}
	r.formats[format] = true
	return bytes.ReplaceAll(document, []byte(sealed), []byte("clear")), nil
}

const sopsTree = `
-- app/kustomization.yaml --
resources: [secret.yaml, thing.yaml, keys.yaml, ../generated]
-- app/secret.yaml --
apiVersion: v1
kind: Secret
metadata: {name: whole}
data: {password: "` + sealed + `"}
sops: {mac: "` + sealed + `"}
-- app/thing.yaml --
apiVersion: example.com/v1
kind: Thing
metadata: {name: thing}
spec: {open: yes, list: [{token: "` + sealed + `"}]}
sops: {mac: "` + sealed + `"}
-- app/keys.yaml --
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData:
  open: word
  app.env: |
    TOKEN=` + sealed + `
    sops_mac=x
-- generated/kustomization.yaml --
secretGenerator:
- name: generated
  files: [token.yaml]
  envs: [app.env]
generatorOptions: {disableNameSuffixHash: true}
-- generated/token.yaml --
token: ` + sealed + `
sops: {}
-- generated/app.env --
WORD=` + sealed + `
sops_mac=x
`

const decrypting = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: flux-system}
spec: {path: app, decryption: {provider: sops}}
`

func TestMasked(t *testing.T) {
	t.Parallel()
	result, err := build.Kustomization(context.Background(), tree(sopsTree), object(t, decrypting), build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mask := base64.StdEncoding.EncodeToString([]byte("**SOPS**"))
	want := map[string]any{
		"whole": map[string]any{"password": mask},
		"thing": map[string]any{"open": "yes", "list": []any{map[string]any{"token": "**SOPS**"}}},
		"keys":  map[string]any{"open": "word", "app.env": "**SOPS**"},
		"generated": map[string]any{
			"token.yaml": mask,
			"WORD":       mask,
			"sops_mac":   base64.StdEncoding.EncodeToString([]byte("x")),
		},
	}
	got := map[string]any{}
	for _, o := range result.Objects {
		masked, did := build.Masked(o.Unstructured)
		if !did || !o.Encrypted {
			t.Errorf("%s is not known to be encrypted", o.GetName())
		}
		for _, field := range []string{"data", "stringData", "spec"} {
			if value, ok := masked.Object[field]; ok {
				got[o.GetName()] = value
			}
		}
		if _, left := masked.Object["sops"]; left {
			t.Errorf("%s still has sops", o.GetName())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	login := object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ntype: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: x}\nsops: {mac: x}")
	masked, _ := build.Masked(login)
	encoded := base64.StdEncoding.EncodeToString([]byte(`{"mask":"**SOPS**"}`))
	if diff := cmp.Diff(map[string]any{".dockerconfigjson": encoded}, masked.Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func TestDecrypts(t *testing.T) {
	t.Parallel()
	key := rot{map[string]bool{}}
	result, err := build.Kustomization(context.Background(), tree(sopsTree), object(t, decrypting), build.Options{Decrypt: with(key)})
	if err != nil {
		t.Fatal(err)
	}
	if text := show(t, result); strings.Contains(text, "ENC[") || !strings.Contains(text, "token: clear") {
		t.Error(text)
	}
	want := map[string][][]string{
		"whole": {{"data", "password"}},
		"thing": {{"spec", "list", "0", "token"}},
		"keys":  {{"stringData", "app.env"}},
		// All keys of a generator are derived from its files.
		"generated": {{"data", "WORD"}, {"data", "token.yaml"}},
	}
	got := map[string][][]string{}
	for _, o := range result.Objects {
		if o.Secret != nil {
			got[o.GetName()] = o.Secret
		}
		if o.GetName() == "generated" {
			data, err := build.DataOf(o.Unstructured)
			if err != nil || string(data["WORD"]) != "clear" || string(data["token.yaml"]) != "token: clear\nsops: {}\n" {
				t.Errorf("%q, %v", data, err)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"json": true, "dotenv": true, "yaml": true}, key.formats); diff != "" {
		t.Error(diff)
	}
}

func TestDecryptsOnlyWhatIsAsked(t *testing.T) {
	t.Parallel()
	switched := object(t, decrypting)
	delete(switched.Object["spec"].(map[string]any), "decryption")
	key := rot{map[string]bool{}}
	if _, err := build.Kustomization(context.Background(), tree(sopsTree), switched, build.Options{Decrypt: with(key)}); err != nil || len(key.formats) > 0 {
		t.Errorf("%v, %v", key.formats, err)
	}
	lost := tree("-- app/secret.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: no-key}\ndata: {a: x}\nsops: {mac: x}\n")
	_, err := build.Kustomization(context.Background(), lost, object(t, decrypting), build.Options{Decrypt: with(key)})
	if err == nil || err.Error() != "decrypting Secret/no-key: no key available" {
		t.Error(err)
	}
}

// with gives every Kustomization the same keys.
func with(d build.Decrypter) func(*unstructured.Unstructured, build.Lookup) build.Decrypter {
	return func(*unstructured.Unstructured, build.Lookup) build.Decrypter { return d }
}
