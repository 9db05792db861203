// Package build renders the objects that Kustomizations and HelmReleases of Flux apply. It works in
// memory and never writes to the directory, so builds can run concurrently and on read-only files.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/build/recall"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Cache stores build results between runs.
type Cache = recall.Cache

// Options configures the build of a Kustomization in addition to its spec.
type Options struct {
	// Path is the directory to build, relative to the root of the tree and with forward slashes. If it
	// is "", spec.path is built.
	Path string
	// Lookup finds the ConfigMaps and Secrets of postBuild.substituteFrom. If it is nil, they are
	// not looked up, as with --dry-run.
	Lookup Lookup
	// Missing is called for a ConfigMap or Secret that cannot be read and is not optional. If it
	// returns true, the build continues without the object. Nil fails the build.
	Missing func(object controllers.ID, err error) bool
	// KeepUnset keeps ${NAME} for variables without a value if Missing returned true, so that texts
	// with different variables remain different.
	KeepUnset bool
	// Unset is called for an object with variables that have neither a value nor a
	// default. It may be nil.
	Unset func(o *unstructured.Unstructured, names []string)
	// Vars holds variables that override the variables of the spec.
	Vars map[string]string
	// SecretVars holds the names of the Vars that come from a Secret.
	SecretVars []string
	// Strict fails the build if a variable without a default is not set.
	Strict bool
	// Ignore holds patterns in the format of .gitignore for files of the directory to exclude, in
	// addition to the patterns in its .sourceignore files.
	Ignore []string
	// Filter excludes files by the .sourceignore files of the directory. Artifacts do not need it:
	// source-controller has already excluded the files.
	Filter bool
	// Decrypt returns the decrypter of a Kustomization, whose keys are in a Secret that the lookup
	// finds. Nil keeps the values that SOPS encrypted.
	Decrypt func(ks *unstructured.Unstructured, lookup Lookup) Decrypter
	// Budget limits the input and output of builds. Several builds may share one. If it is nil,
	// each build has the default limits.
	Budget *budget.Budget
	// Kustomizer runs kustomize if the work is not bounded by the size of the input. Nil runs all
	// work in this process, which is for trusted input only.
	Kustomizer Kustomizer
	// Twin is the Twin of the Kustomization, if another build has rendered it.
	Twin *unstructured.Unstructured
	// Cache stores the output of kustomize, unless it may contain secret values. Nil disables caching.
	Cache Cache
}

// Result holds the objects of a build.
type Result struct {
	// Objects holds the built objects in the order in which kustomize returns them.
	Objects []Object
	// SecretValues holds the values of variables that come from Secrets.
	SecretValues []string
	// Excluded holds the objects that a ResourceSet contains but neither applies nor deletes.
	Excluded []controllers.VersionedID
}

// Add adds the objects, the secret values and the excluded objects of another build.
func (r *Result) Add(other *Result) {
	r.Objects, r.Excluded = append(r.Objects, other.Objects...), append(r.Excluded, other.Excluded...)
	r.SecretValues = append(r.SecretValues, other.SecretValues...)
	slices.Sort(r.SecretValues)
	r.SecretValues = slices.Compact(r.SecretValues)
}

// Unstructured returns the objects without information about their origin.
func (r *Result) Unstructured() []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, len(r.Objects))
	for i, o := range r.Objects {
		objects[i] = o.Unstructured
	}
	return objects
}

// Object is an object and its origin.
type Object struct {
	*unstructured.Unstructured
	// Encrypted reports whether SOPS encrypted the object in the source. Without a Decrypter, its
	// values are still encrypted; with one, they are in plain text.
	Encrypted bool
	// Withheld reports whether the object is encrypted and not decrypted because the input is
	// untrusted.
	Withheld bool
	// Secret holds the paths of values that are derived from secret values. A path consists of map
	// keys and list indices.
	Secret [][]string
	// Twin is the object in a build with other secret values, or nil if it is the same. It is empty
	// if the object is missing there.
	Twin *unstructured.Unstructured
	// Unstable holds the paths of values that differ on every rendering. An empty path means that
	// the identity of the object differs. See MarkUnstable.
	Unstable [][]string
	// Owner is the Kustomization, HelmRelease, ResourceSet or FluxInstance that applies the object.
	Owner controllers.ID
	// InvalidLabels holds the keys of labels whose values are not strings. kustomize-controller removes
	// all labels of such an object, and so does the build.
	InvalidLabels []string
	// Unset holds the names of variables in the object that have neither a value nor a default. It is empty if some values are
	// not known here.
	Unset []string
	// Partial reports whether the data that a ResourceSet copies into the object is missing.
	Partial bool
	// Ahead reports whether the object is applied before a release and is not part of it, like the
	// CRDs in the crds directory of a chart. Helm never deletes such an object.
	Ahead bool
}

const toolkit = "kustomize.toolkit.fluxcd.io"

// Kustomization renders the objects that kustomize-controller would apply for a Kustomization with
// tree as its source. A build that has read secret values is repeated with other values, to find
// the values that are derived from them.
func Kustomization(ctx context.Context, tree fs.FS, ks *unstructured.Unstructured, o Options) (*Result, error) {
	result, err := kustomization(ctx, tree, ks, o)
	return result, budget.Short(err)
}

func kustomization(ctx context.Context, tree fs.FS, ks *unstructured.Unstructured, o Options) (*Result, error) {
	if o.Budget == nil {
		o.Budget = budget.New(budget.Default())
	}
	first := &kustomizationBuild{ctx: ctx, tree: tree, ks: ks, options: o, shadow: NewShadow(o.Twin)}
	first.options.Lookup = first.shadow.Lookup(o.Lookup)
	if decrypt := decrypterOf(ks, o); decrypt != nil {
		first.decrypt = decrypt
		if _, untrusted := decrypt.(Untrusted); !untrusted {
			first.decrypt = first.shadow.decrypter(decrypt)
		}
	}
	first.shadow.Secret = first.shadow.Secret || slices.ContainsFunc(o.SecretVars, func(name string) bool { return o.Vars[name] != "" })
	result, err := first.run()
	if !first.shadow.Secret || ctx.Err() != nil {
		return result, err
	}
	twin, again := first.repeat()
	if err != nil {
		return nil, first.shadow.Discreet(err, again, first.secretValues)
	}
	Mark(result.Objects, twin)
	return result, nil
}

// kustomizationBuild is a build of a Kustomization, or its repetition with other secret values.
type kustomizationBuild struct {
	shadow  *Shadow
	ctx     context.Context // of a single build
	tree    fs.FS
	ks      *unstructured.Unstructured
	options Options
	decrypt Decrypter
	// rendered holds the objects before decryption and substitution, and generated reports whether
	// they depend on secret values.
	rendered     []Object
	generated    bool
	secretValues []string
}

func (b *kustomizationBuild) run() (*Result, error) {
	if b.rendered == nil {
		if err := b.render(); err != nil {
			return nil, err
		}
		b.generated = b.shadow.Indirect || b.shadow.decrypted()
	}
	vars, err := variablesOf(b.ctx, b.ks, b.options)
	if err != nil {
		return nil, err
	}
	b.secretValues = vars.secretValues()
	result := &Result{SecretValues: b.secretValues}
	mayRepeat := b.shadow.Secret || b.decrypt != nil || len(DataReferences(b.ks)) > 0
	for _, object := range b.rendered {
		if mayRepeat { // the second build begins with the same objects
			object.Unstructured = object.DeepCopy()
		}
		object.Owner = controllers.FluxID(controllers.Kustomization, b.ks.GetNamespace(), b.ks.GetName())
		if b.ctx.Err() != nil {
			return nil, context.Cause(b.ctx)
		}
		if err := object.finish(b.ctx, b.decrypt, vars); err != nil {
			var exceeded *budget.ExceededError
			if errors.As(err, &exceeded) {
				err = fmt.Errorf("building %s: %w", controllers.IDOf(b.ks.Object), err)
			}
			return nil, err
		}
		if strings.HasPrefix(object.GetAPIVersion(), "kustomize.config.k8s.io/") {
			continue // a kustomization.yaml that is listed as a resource is not applied
		}
		result.Objects = append(result.Objects, object)
	}
	addMetadata(result.Objects, b.ks)
	return result, b.ctx.Err()
}

// render builds the objects of the directory.
func (b *kustomizationBuild) render() error {
	folder, err := directoryOf(b.tree, b.ks, b.options.Path)
	if err != nil {
		return err
	}
	files := &files{ctx: b.ctx, tree: b.tree, decrypt: b.decrypt, budget: b.options.Budget, elsewhere: b.options.Kustomizer}
	if !b.shadow.Secret {
		files.cache = b.options.Cache
	}
	if err = files.generate(folder, b.ks, b.options); err == nil {
		b.rendered, err = files.run(folder)
	}
	if err != nil {
		return fmt.Errorf("building %s: %w", controllers.IDOf(b.ks.Object), err)
	}
	return nil
}

// repeat builds again with other secret values and without reading anything. It reuses the objects
// of the directory unless they depend on secret values.
func (b *kustomizationBuild) repeat() ([]Object, error) {
	b.shadow.Repeating = true
	again := *b
	again.options.Budget, again.options.Unset = budget.New(b.options.Budget.Limits()), nil
	if b.options.Missing != nil {
		again.options.Missing = func(controllers.ID, error) bool { return true } // the first build has called it
	}
	if b.options.Twin != nil {
		again.ks = b.options.Twin
	}
	if b.generated {
		again.rendered = nil
	}
	again.options.Vars = maps.Clone(b.options.Vars)
	for _, name := range b.options.SecretVars {
		again.options.Vars[name] = placeholder.Of(again.options.Vars[name])
	}
	result, err := again.run()
	if err != nil {
		return nil, err
	}
	return result.Objects, nil
}

// directoryOf returns the directory to build, or "." for the root of the tree.
func directoryOf(tree fs.FS, ks *unstructured.Unstructured, folder string) (string, error) {
	if folder == "" {
		folder, _, _ = unstructured.NestedString(ks.Object, "spec", "path")
	}
	folder = sourcetree.Clean(folder) // as in the controller, an absolute path is relative to the root of the tree
	return folder, sourcetree.CheckDirectory(tree, folder)
}

// finish decrypts an object and substitutes its variables.
func (o *Object) finish(ctx context.Context, decrypt Decrypter, vars *variables) error {
	if o.GetName() == "" || o.GetKind() == "" || o.GetAPIVersion() == "" {
		return fmt.Errorf("object without apiVersion, kind or name: %s", describe(o.Unstructured))
	}
	if err := o.decrypt(ctx, decrypt); err != nil {
		return fmt.Errorf("decrypting %s: %w", describe(o.Unstructured), err)
	}
	if err := vars.substitute(o); err != nil {
		return fmt.Errorf("substituting variables of %s: %w", describe(o.Unstructured), err)
	}
	return nil
}

// describe returns Kind/namespace/name of an object, for messages.
func describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}

// addMetadata adds the labels of the owner and spec.commonMetadata to objects.
func addMetadata(objects []Object, ks *unstructured.Unstructured) {
	labels, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "commonMetadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "commonMetadata", "annotations")
	owner := map[string]string{toolkit + "/name": ks.GetName(), toolkit + "/namespace": ks.GetNamespace()}
	for i := range objects {
		o := &objects[i]
		o.InvalidLabels = invalidLabels(o.Unstructured)
		o.SetLabels(Merged(o.GetLabels(), owner, labels))
		if len(annotations) > 0 {
			o.SetAnnotations(Merged(o.GetAnnotations(), annotations))
		}
	}
}

// invalidLabels returns the keys of the labels whose values are not strings, sorted.
func invalidLabels(o *unstructured.Unstructured) []string {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "labels")
	labels, _ := value.(map[string]any)
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if _, ok := labels[key].(string); !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// Merged returns the entries of all maps; later maps override earlier ones.
func Merged[V any](all ...map[string]V) map[string]V {
	merged := map[string]V{}
	for _, m := range all {
		maps.Copy(merged, m)
	}
	return merged
}
