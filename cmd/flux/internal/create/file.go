package create

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxManifests is the maximum size of a file with manifests in bytes.
const maxManifests = 10 << 20

// others maps the supported kinds that are not Flux kinds to the order in which they are applied:
// namespaces before their contents.
var others = map[string]int{"Namespace": 0, "ServiceAccount": 1, "RoleBinding": 1, "Secret": 1, "ConfigMap": 1}

// lastKind is the position of Flux objects in this order.
const lastKind = 2

// manifest is an object of a file.
type manifest struct {
	object *unstructured.Unstructured
	file   string
	// kind is the kind in the catalog if it is a Flux object.
	kind  controllers.Kind
	order int
}

// createFiles applies the manifests of files and waits for the Flux objects among them.
func createFiles(a *app.App, cmd *cobra.Command, o *creation.Flags, files []string) error {
	c := creation.NewUnnamed(a, cmd, o)
	if o.Export {
		c.Check(errors.New("--filename and --export are mutually exclusive: the file already contains the manifests"))
	}
	c.Excludes("filename", "the manifests contain the intervals", "interval")
	var all []manifest
	for _, file := range files {
		all = append(all, readManifests(c, file)...)
	}
	if len(c.Problems) == 0 && len(all) == 0 {
		c.Check(errors.New("no manifests found: --filename must be a YAML or JSON file with manifests, or - for standard input"))
	}
	if err := c.Err(); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b manifest) int { return a.order - b.order })
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if err := validateManifests(ctx, c, all); err != nil || o.DryRun != "" {
		return err
	}
	return applyManifests(ctx, c, all)
}

// readManifests returns the objects in a file and records invalid ones.
func readManifests(c *creation.Creation, file string) []manifest {
	objects, err := sourcetree.ReadManifests(bytes.NewReader(c.LargeFile("filename", file, maxManifests)))
	if err != nil {
		c.CheckFlag("filename", fmt.Errorf("reading %s: %w", file, err))
		return nil
	}
	var all []manifest
	for _, o := range objects {
		for _, item := range items(o) {
			m, err := check(c, file, item)
			if err != nil {
				c.CheckFlag("filename", fmt.Errorf("%s: %w", file, err))
				continue
			}
			all = append(all, m)
		}
	}
	return all
}

// items returns the items of a list, or the object itself.
func items(o *unstructured.Unstructured) []*unstructured.Unstructured {
	if !o.IsList() {
		return []*unstructured.Unstructured{o}
	}
	var all []*unstructured.Unstructured
	list, _ := o.Object["items"].([]any)
	for _, item := range list {
		object, _ := item.(map[string]any)
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	return all
}

// check validates an object in a file, sets its namespace, and removes the fields that the API
// server manages.
func check(c *creation.Creation, file string, o *unstructured.Unstructured) (manifest, error) {
	m := manifest{object: o, file: file, order: lastKind}
	gvk := o.GroupVersionKind()
	k, known := controllers.KindOf(gvk.Group, gvk.Kind)
	order, other := others[gvk.Kind]
	switch _, encrypted := o.Object["sops"]; {
	case gvk.Kind == "" || gvk.Version == "":
		return m, errors.New("a manifest has no apiVersion or kind")
	case known:
		m.kind = k
	case !other || gvk.Group != "" && gvk.Group != "rbac.authorization.k8s.io":
		return m, hint.Errorf(hint.Command("kubectl apply -f %s", file), "%s has a kind that flux create does not support", kube.Describe(o))
	case encrypted:
		return m, fmt.Errorf("%s: %w", kube.Describe(o), &build.EncryptedError{File: file})
	default:
		m.order = order
	}
	if err := syntax.ObjectName(o.GetName()); err != nil {
		return m, fmt.Errorf("%s: %w", gvk.Kind, err)
	}
	delete(o.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	for key, value := range c.Labels {
		if err := unstructured.SetNestedField(o.Object, value, "metadata", "labels", key); err != nil {
			return m, fmt.Errorf("%s: %w", kube.Describe(o), err)
		}
	}
	return m, place(c, o)
}

// place sets the namespace of an object without one. --namespace must match the namespace of other
// objects.
func place(c *creation.Creation, o *unstructured.Unstructured) error {
	switch namespace := o.GetNamespace(); {
	case o.GetKind() == "Namespace":
		o.SetNamespace("")
	case namespace == "":
		o.SetNamespace(c.Namespace)
	case namespace != c.Namespace && len(c.Given("namespace")) > 0:
		return fmt.Errorf("%s is not in namespace %s: omit --namespace", kube.Describe(o), c.Namespace)
	}
	return nil
}

// validateManifests dry-runs all objects before the first is applied, except those whose namespace
// does not exist yet.
func validateManifests(ctx context.Context, c *creation.Creation, all []manifest) error {
	client, err := c.App.Client()
	if err != nil {
		return err
	}
	created := map[string]bool{}
	for _, m := range all {
		if m.object.GetKind() == "Namespace" {
			created[m.object.GetName()] = true
		}
	}
	var shown []controllers.Object
	for _, m := range all {
		if created[m.object.GetNamespace()] {
			if c.DryRun != "" {
				c.App.UI.Warning("%s not checked: its namespace is in the same input", kube.Describe(m.object))
			}
			continue
		}
		if c.DryRun != "" {
			var done kube.Upserted
			done, err = c.Apply(ctx, kube.Describe(m.object), m.object)
			shown = append(shown, done.After)
		} else {
			_, err = kube.Upsert(ctx, client, m.object, true)
		}
		var answer apierrors.APIStatus
		if err != nil && !errors.As(err, &answer) {
			return err // the API server is unreachable
		}
		if err != nil {
			c.Check(c.Explain(fmt.Errorf("%s: %w", m.file, err), m.object))
		}
	}
	if err := c.Err(); err != nil || c.DryRun == "" {
		return err
	}
	return c.Show(shown...)
}

// applyManifests applies all objects, waits for the Flux objects, and prints them with --output.
func applyManifests(ctx context.Context, c *creation.Creation, all []manifest) error {
	applied := make([]kube.Upserted, len(all))
	for i, m := range all {
		done, err := c.Apply(ctx, kube.Describe(m.object), m.object)
		if err != nil {
			return err
		}
		applied[i] = done
	}
	var failed []error
	shown := make([]controllers.Object, len(all))
	for i, m := range all {
		shown[i] = applied[i].After
		if m.kind.Kind == "" {
			continue
		}
		one := *c
		one.Name, one.Namespace = m.object.GetName(), m.object.GetNamespace()
		last, err := one.Await(ctx, m.kind, applied[i], false)
		if last != nil {
			shown[i] = last
		}
		failed = append(failed, err)
	}
	return errors.Join(append(failed, c.Show(shown...))...)
}
