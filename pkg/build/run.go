package build

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/konfig"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/recall"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// oneAtATime is held while kustomize builds: kustomize keeps the schema of kinds in package
// variables, which concurrent builds would write.
var oneAtATime sync.RWMutex //nolint:gochecknoglobals // guards globals of kustomize

// run builds a directory without kustomize if the directory is simple enough or kustomize has built the same files before, and
// with kustomize otherwise.
func (f *files) run(folder string) ([]Object, error) {
	if f.cache != nil {
		// Without a decrypter, encrypted files are used as they are.
		f.traces = recall.Open(f.cache, folder, f.generated, f.content, f.decrypt != nil)
		if built, ok := f.traces.Find(unlimited{f}, f.admit); ok {
			return f.objects(built, nil)
		}
	}
	objects, err := (&plain{files: f}).folder(folder)
	if err == nil {
		err = distinct(objects)
	}
	switch {
	case f.refused != nil:
		return nil, f.refused
	case err == nil:
		return objects, nil
	}
	objects, err = f.runKustomize(folder)
	return objects, f.named(folder, err)
}

// named adds the path of the kustomization to kustomize errors without a file name, such as patch errors.
func (f *files) named(folder string, err error) error {
	var exceeded *budget.ExceededError
	if err == nil || f.refused != nil || f.ctx.Err() != nil || errors.As(err, &exceeded) || strings.Contains(err.Error(), ".yaml") || strings.Contains(err.Error(), ".yml") {
		return err
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if name = path.Join(folder, name); f.Exists(name) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}

// runKustomize runs kustomize in this process if the result is bounded by the size of its input, which avoids starting a
// process. Otherwise, it calls elsewhere.
func (f *files) runKustomize(folder string) ([]Object, error) {
	folder = "/" + sourcetree.Clean(folder)
	if f.elsewhere != nil {
		f.cost = &inspect.Cost{}
	}
	reads := recall.NewRecorder(f)
	built, err := Kustomize(folder, reads)
	if errors.Is(f.refused, inspect.ErrCostly) {
		f.refused, f.cost, reads = nil, nil, recall.NewRecorder(f)
		built, err = f.elsewhere.Kustomize(f.ctx, folder, reads)
	}
	objects, err := f.objects(built, err)
	if err == nil && f.traces != nil && !f.private && !slices.ContainsFunc(objects, func(o Object) bool { return o.GetKind() == controllers.Secret && !encrypted(o.Object) }) {
		f.traces.Keep(reads, built)
	}
	return objects, err
}

func (f *files) objects(built [][]byte, err error) ([]Object, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	if err != nil {
		return nil, err
	}
	objects := make([]Object, 0, len(built))
	for _, content := range built {
		o := &unstructured.Unstructured{}
		if err := f.budget.Add("", 1, budget.Nodes(content)); err != nil {
			return nil, err
		}
		if err := f.budget.Write("", int64(len(content))); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(content, &o.Object); err != nil {
			return nil, fmt.Errorf("reading an object that kustomize returned: %w", err)
		}
		objects = append(objects, Object{Unstructured: o})
	}
	return objects, nil
}

// Bounds limits the work on manifests that are not files of a source.
type Bounds struct {
	Budget     *budget.Budget
	Kustomizer Kustomizer
}

// Kustomize returns the objects of manifests after it has applied a kustomization.
func (b *Bounds) Kustomize(ctx context.Context, manifests []byte, k *kustomize.Kustomization) ([]Object, error) {
	const rendered, folder = "rendered.yaml", "release"
	k.APIVersion, k.Kind, k.Resources = kustomize.KustomizationVersion, kustomize.KustomizationKind, []string{rendered}
	text, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	tree, err := filetree.InMemory(map[string][]byte{folder + "/kustomization.yaml": text, folder + "/" + rendered: manifests})
	if err != nil {
		return nil, err
	}
	return (&files{ctx: ctx, tree: tree, budget: b.Budget, elsewhere: b.Kustomizer}).run(folder)
}
