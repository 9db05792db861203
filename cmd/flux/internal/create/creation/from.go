package creation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// From is the flag --from: the object whose spec is copied.
type From struct{ value string }

// Add registers the flag for a kind.
func (f *From) Add(fs *pflag.FlagSet, k controllers.Kind) {
	fs.StringVar(&f.value, "from", "", "copy "+controllers.Indefinite(k.Kind)+" from the cluster, as [NAMESPACE/]NAME; flags override its fields")
}

// Given reports whether the flag is set.
func (f *From) Given() bool { return f.value != "" }

// Check validates the flag with the flags of the builder. It makes required flags optional, because
// the copied object has their fields.
func (f *From) Check(c *Creation, b Builder) {
	c.Partial = f.Given()
	if !c.Partial {
		return
	}
	original := f.original(c)
	if !c.Export && original.Name == c.Name && original.Namespace == c.Namespace {
		c.Check(errors.New("--from refers to the object itself: omit --from to change it, or set another name or --export"))
	}
	var others []string
	c.Cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != "from" && flag.Name != "help" && b.FieldsOf(flag.Name) == nil {
			others = append(others, flag.Name)
		}
	})
	c.Excludes("from", "the copy references the Secrets of the original", others...)
}

// original returns the object that the flag specifies.
func (f *From) original(c *Creation) controllers.ID {
	ref, err := syntax.NamespacedName(f.value)
	c.CheckFlag("from", err)
	if ref.Namespace == "" {
		ref.Namespace = c.Namespace
	}
	return ref
}

// Copy reads the object that the flag specifies and returns a copy. Fields of flags that are set
// are taken from spec.
func (f *From) Copy(ctx context.Context, c *Creation, k controllers.Kind, b Builder, spec map[string]any) (*unstructured.Unstructured, error) {
	client, err := c.App.Client()
	if err != nil {
		return nil, err
	}
	ref := f.original(c)
	t := objref.Target{Kind: k, Namespace: ref.Namespace, Name: ref.Name}
	if err := t.Read(ctx, client); err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	if ref.Namespace != c.Namespace {
		c.App.UI.Warning("references without a namespace now refer to objects in namespace %s: compare with %s",
			c.Namespace, hint.Command("flux export "+k.Noun()+" %s -n %s", ref.Name, ref.Namespace))
	}
	o := (&unstructured.Unstructured{Object: controllers.Manifest(t.Object)}).DeepCopy()
	controllers.RemoveOwner(o.Object)
	o.SetName(c.Name)
	o.SetNamespace(c.Namespace)
	for key, value := range c.Labels {
		if err := unstructured.SetNestedField(o.Object, value, "metadata", "labels", key); err != nil {
			return nil, fmt.Errorf("--label: %w", err)
		}
	}
	copied, _ := o.Object["spec"].(map[string]any)
	if copied == nil {
		copied = map[string]any{}
		o.Object["spec"] = copied
	}
	c.Cmd.Flags().Visit(func(flag *pflag.Flag) {
		for _, path := range b.FieldsOf(flag.Name) {
			take(copied, spec, path)
		}
	})
	return o, nil
}

// take replaces a field with its value in another spec, or removes it.
func take(onto, from map[string]any, path string) {
	steps := strings.Split(path, ".")
	if value, there, _ := unstructured.NestedFieldNoCopy(from, steps...); there {
		set(onto, path, value)
		return
	}
	unstructured.RemoveNestedField(onto, steps...)
	// Maps that become empty are removed.
	for above := steps[:len(steps)-1]; len(above) > 0; above = above[:len(above)-1] {
		rest, there, _ := unstructured.NestedFieldNoCopy(onto, above...)
		if m, ok := rest.(map[string]any); !there || !ok || len(m) > 0 {
			return
		}
		unstructured.RemoveNestedField(onto, above...)
	}
}
