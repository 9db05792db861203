// Package stub generates values that are not available in a test: missing Secrets and ConfigMaps, and
// SOPS-encrypted values.
package stub

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// Need is a Secret or ConfigMap that Flux objects refer to and that does not exist.
type Need struct {
	Object controllers.ID `json:"object"`
	// NeededBy lists the Flux objects that refer to it, and Fields the fields with the references.
	NeededBy []controllers.ID `json:"neededBy"`
	Fields   []string         `json:"fields"`
	// Keys lists the generated keys.
	Keys []string `json:"keys,omitempty"`
	// Remedy describes how to provide it.
	Remedy string `json:"remedy,omitempty"`

	refs []need
}

// need is one reference to an object.
type need struct {
	by     settle.Flux
	object controllers.ID
	ref    controllers.DataRef
}

// referenced returns the references of an object to Secrets and ConfigMaps that must exist.
func referenced(f settle.Flux) []need {
	var all []need
	for _, ref := range controllers.DataOf(f.Object) {
		if !ref.Optional && (ref.Kind == controllers.Secret || ref.Kind == controllers.ConfigMap) {
			all = append(all, need{f, controllers.ID{Kind: ref.Kind, Namespace: controllers.Namespace(f.Object), Name: ref.Name}, ref})
		}
	}
	return all
}

// copyField is the field of a ResourceSet that refers to an object whose data is copied.
const copyField = "spec.resources"

// copied returns the Secrets whose data a ResourceSet copies. The key of the reference is the type of the copy.
func copied(f settle.Flux) []need {
	if !f.ID().IsResourceSet() {
		return nil
	}
	var all []need
	resources, _, _ := unstructured.NestedSlice(f.Object, "spec", "resources")
	for _, resource := range resources {
		manifest, _ := resource.(map[string]any)
		o := unstructured.Unstructured{Object: manifest}
		namespace, name, ok := strings.Cut(o.GetAnnotations()[controllers.CopyAnnotation], "/")
		if !ok || o.GetKind() != controllers.Secret || strings.Contains(namespace+name, "<<") {
			continue
		}
		kind, _, _ := unstructured.NestedString(manifest, "type")
		ref := controllers.DataRef{Kind: controllers.Secret, SecretRef: controllers.SecretRef{Name: name, Field: copyField}, Key: kind}
		all = append(all, need{f, controllers.ID{Kind: controllers.Secret, Namespace: namespace, Name: name}, ref})
	}
	return all
}

// Provider finds and creates the Secrets and ConfigMaps that Flux objects refer to.
type Provider struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	// Tree contains the manifests of the repository.
	Tree fs.FS
	// Fake creates missing objects with generated values.
	Fake bool
	// AgeKey holds the private age keys for the Secrets with which Kustomizations decrypt.
	AgeKey string
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
}

// Missing returns the missing Secrets and ConfigMaps that objects refer to, with remedies.
func (p Provider) Missing(ctx context.Context, objects []settle.Flux) ([]*Need, error) {
	missing, err := p.find(ctx, objects)
	for _, n := range missing {
		n.Remedy = p.remedy(n)
	}
	return missing, err
}

// find returns the missing Secrets and ConfigMaps that objects refer to.
func (p Provider) find(ctx context.Context, objects []settle.Flux) ([]*Need, error) {
	found := map[controllers.ID]*Need{}
	for _, f := range objects {
		for _, ref := range append(referenced(f), copied(f)...) {
			key := ref.object
			if found[key] == nil {
				_, err := p.Client.Get(ctx, kube.BuiltIn("v1", key.Kind), key.Namespace, key.Name)
				if err == nil {
					continue
				}
				if !apierrors.IsNotFound(err) {
					return nil, err
				}
				found[key] = &Need{Object: key}
			}
			n := found[key]
			n.refs = append(n.refs, ref)
			if by := f.ID(); !slices.Contains(n.NeededBy, by) {
				n.NeededBy = append(n.NeededBy, by)
			}
			if !slices.Contains(n.Fields, ref.ref.Field) {
				n.Fields = append(n.Fields, ref.ref.Field)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *Need) int { return strings.Compare(a.Object.String(), b.Object.String()) }), nil
}

// remedy returns how to provide an object to the run.
func (p Provider) remedy(n *Need) string {
	switch {
	case slices.Contains(n.Fields, DecryptionField):
		return "provide the age keys with --age-key-file, or stub values with --fake-secrets"
	case len(p.keysOf(n)) == 0:
		return "add a manifest to the repository: its values cannot be generated"
	case p.inGit(n.Object):
		return "apply its manifest before " + n.NeededBy[0].String() + " is reconciled, e.g. with spec.dependsOn"
	case p.Fake:
		return "add a manifest to the repository"
	}
	return "set --fake-secrets to create it with generated values"
}

// inGit reports whether the repository has a manifest of an object: it is applied when its
// Kustomization is reconciled.
func (p Provider) inGit(ref controllers.ID) bool {
	found, err := sourcetree.Search(context.Background(), p.Tree, []string{ref.Kind, ref.Name}, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == ref.Kind && o.GetName() == ref.Name && (o.GetNamespace() == "" || o.GetNamespace() == ref.Namespace)
	})
	return err != nil || len(found) > 0
}

// DecryptionField is the Kustomization field that refers to the Secret with the decryption keys.
const DecryptionField = "spec.decryption.secretRef"

// Provide creates the Secrets and ConfigMaps that failed objects refer to and that are neither on the cluster nor in
// Git, and returns them.
func (p Provider) Provide(ctx context.Context, failing []settle.Flux) (created []Need, err error) {
	missing, err := p.find(ctx, failing)
	if err != nil {
		return nil, err
	}
	for _, n := range missing {
		data, err := p.dataFor(ctx, n)
		if err != nil {
			return created, err
		}
		if len(data) == 0 || p.inGit(n.Object) {
			continue
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": n.Object.Kind, "metadata": map[string]any{"namespace": n.Object.Namespace, "name": n.Object.Name},
		}}
		field := "data"
		if n.Object.Kind == controllers.Secret {
			field = "stringData"
		}
		values := map[string]any{}
		for key, value := range data {
			values[key] = value
		}
		o.Object[field] = values
		if data[dockerConfig] != "" {
			o.Object["type"] = dockerConfigType
		}
		if _, err := kube.Upsert(ctx, p.Client, o, false); err != nil {
			return created, err
		}
		n.Keys = slices.Sorted(maps.Keys(data))
		created = append(created, *n)
	}
	return created, nil
}

// The key and the type of Secrets with registry credentials.
const (
	dockerConfig     = ".dockerconfigjson"
	dockerConfigType = "kubernetes.io/dockerconfigjson"
)

// keysOf returns the keys that the references require, empty if their values cannot be generated.
func (p Provider) keysOf(n *Need) []string {
	var keys []string
	for _, ref := range n.refs {
		switch ref.ref.Field {
		case "spec.secretRef", copyField:
			if ref.by.Kind.Fetch.Login == "oci" || ref.ref.Key == dockerConfigType {
				return []string{dockerConfig}
			}
			keys = append(keys, "username", "password", "token", "address")
		case "spec.valuesFrom":
			keys = append(keys, valuesKey(ref.ref))
		case "spec.postBuild.substituteFrom":
			keys = append(keys, "") // requires a build
		}
	}
	return keys
}

// valuesKey returns the key that a reference in valuesFrom reads.
func valuesKey(ref controllers.DataRef) string { return cmp.Or(ref.Key, "values.yaml") }

// dataFor returns the data of an object, empty if it is not to be created.
func (p Provider) dataFor(ctx context.Context, n *Need) (map[string]string, error) {
	data, of := map[string]string{}, n.Object.String()
	if p.AgeKey != "" && slices.Contains(n.Fields, DecryptionField) {
		data["flux.agekey"] = p.AgeKey
	}
	if !p.Fake {
		return data, nil
	}
	for _, key := range p.keysOf(n) {
		switch key {
		case "":
		case dockerConfig:
			text, err := json.Marshal(map[string]any{"auths": map[string]any{"registry.invalid": map[string]any{"username": generate(of, key, "username"), "password": generate(of, key, "password")}}})
			if err != nil {
				return nil, err
			}
			data[key] = string(text)
		case "address":
			data[key] = "https://" + generate(of, key) + ".invalid"
		default:
			data[key] = generate(of, key)
		}
	}
	for _, ref := range n.refs {
		switch {
		case ref.ref.Field == "spec.valuesFrom" && ref.ref.Path == "" && (ref.ref.Key == "" || data[ref.ref.Key] != ""):
			data[valuesKey(ref.ref)] = "{}\n"
		case ref.ref.Field == "spec.postBuild.substituteFrom":
			names, err := p.unset(ctx, ref.by)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				data[name] = generate(of, name)
			}
			if len(names) == 0 {
				data["unused"] = generate(of, "unused") // the controller requires the object itself
			}
		}
	}
	return data, nil
}

// generate returns a generated value, which is valid as a name, a host and a label. It depends only on its purpose,
// so that two runs generate the same values.
func generate(what ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(what, "\x00")))
	return "fake-" + hex.EncodeToString(sum[:6])
}

// unset returns the names of variables without a value in a Kustomization build.
func (p Provider) unset(ctx context.Context, f settle.Flux) ([]string, error) {
	var source controllers.Object
	for _, t := range f.Kind.SourceOf(f.Object) {
		k, _ := t.Flux()
		var err error
		source, err = p.Client.GetKind(ctx, k, t.Namespace, t.Name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	at, ok := artifact.Of(source)
	if !ok {
		return nil, nil
	}
	packed, err := artifact.Fetch(ctx, p.Client, at, p.Home)
	if err != nil {
		return nil, err
	}
	tree, err := sourcetree.Archive(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	ks := (&unstructured.Unstructured{Object: f.Object}).DeepCopy()
	ks.SetGroupVersionKind(schema.GroupVersionKind{Group: f.Kind.Group, Version: f.Kind.Version, Kind: f.Kind.Kind})
	names := map[string]bool{}
	_, err = build.Kustomization(ctx, tree, ks, build.Options{
		Lookup: build.LookupFunc(p.data), Missing: func(controllers.ID, error) bool { return true }, Kustomizer: p.Kustomizer,
		Unset: func(_ *unstructured.Unstructured, unset []string) {
			for _, name := range unset {
				names[printable.Line(name)] = true
			}
		},
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil // the controller reports why it cannot be built
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// data returns the data of a ConfigMap or Secret in the sandbox.
func (p Provider) data(ctx context.Context, ref controllers.ID) (map[string][]byte, error) {
	o, err := p.Client.Get(ctx, kube.BuiltIn("v1", ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, build.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return build.DataOf(&unstructured.Unstructured{Object: o})
}
