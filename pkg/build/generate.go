package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
)

// generate sets the kustomization that replaces the kustomization.yaml of the directory: the original,
// or one that lists the manifests, plus the additions in the spec of the Kustomization.
func (f *files) generate(folder string, ks *unstructured.Unstructured, o Options) error {
	ignored, err := f.ignored(folder, o)
	if err != nil {
		return err
	}
	k, name, err := f.original(folder, ignored)
	if err != nil {
		return err
	}
	ignored.filter(k, folder)
	var spec additions
	if err := Decode(ks.Object["spec"], &spec); err != nil {
		return fmt.Errorf("reading the spec: %w", err)
	}
	if err := f.add(k, folder, &spec); err != nil {
		return err
	}
	f.generated = path.Join(folder, name)
	f.content, err = yaml.Marshal(k)
	return err
}

// original returns the kustomization of the directory, or one that lists its manifests.
func (f *files) original(folder string, ignored *ignoring) (*kustomize.Kustomization, string, error) {
	k := &kustomize.Kustomization{TypeMeta: kustomize.TypeMeta{
		APIVersion: kustomize.KustomizationVersion, Kind: kustomize.KustomizationKind,
	}}
	name, err := f.kustomizationIn(folder)
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		if k.Resources, err = f.manifests(folder, ignored); err != nil {
			return nil, "", err
		}
		if len(k.Resources) == 0 {
			k.Namespace = "none" // kustomize returns an error for an empty kustomization
		}
		return k, konfig.DefaultKustomizationFileName(), nil
	}
	text, err := f.ReadFile(path.Join(folder, name))
	if err != nil {
		return nil, "", err
	}
	if err := budget.Unmarshal("", text, k); err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", path.Join(folder, name), err)
	}
	if len(k.Resources) == 0 {
		k.BuildMetadata = []string{kustomize.OriginAnnotations} // kustomize returns an error for an empty kustomization
	}
	return k, name, nil
}

// kustomizationIn returns the name of the kustomization file of a directory, or "" if there is none.
func (f *files) kustomizationIn(folder string) (string, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		info, err := fs.Stat(f.tree, path.Join(folder, name))
		if err == nil && !info.IsDir() {
			return name, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

// manifests returns the YAML files of a directory and its subdirectories, relative to the directory. A
// subdirectory with a kustomization is listed instead of its files.
func (f *files) manifests(folder string, ignored *ignoring) ([]string, error) {
	var found []string
	err := fs.WalkDir(f.tree, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == folder {
			return err
		}
		if err := f.ctx.Err(); err != nil {
			return err
		}
		relative := "./" + below(folder, name)
		if entry.IsDir() {
			own, err := f.kustomizationIn(name)
			if err != nil || own == "" {
				return err
			}
			found = append(found, relative)
			return fs.SkipDir
		}
		if extension := path.Ext(name); extension != ".yaml" && extension != ".yml" || ignored.matches(name, false) {
			return nil
		}
		found = append(found, relative)
		return nil
	})
	return found, err
}

// below returns a name relative to one of its parent directories.
func below(folder, name string) string {
	if folder == "." {
		return name
	}
	return strings.TrimPrefix(name, folder+"/")
}

// additions holds the fields of the spec of a Kustomization that kustomize processes.
type additions struct {
	TargetNamespace         string   `json:"targetNamespace"`
	NamePrefix              string   `json:"namePrefix"`
	NameSuffix              string   `json:"nameSuffix"`
	Components              []string `json:"components"`
	IgnoreMissingComponents bool     `json:"ignoreMissingComponents"`
	BuildMetadata           []string `json:"buildMetadata"`
	Patches                 []Patch  `json:"patches"`
	// The following fields are deprecated but still supported.
	StrategicMerge []json.RawMessage `json:"patchesStrategicMerge"`
	JSON6902       []struct {
		Patch  json.RawMessage `json:"patch"`
		Target *selector       `json:"target"`
	} `json:"patchesJson6902"`
	Images []kustomize.Image `json:"images"`
}

// Patch is a patch in the spec of a Kustomization or of a post-renderer.
type Patch struct {
	Patch  string    `json:"patch"`
	Target *selector `json:"target"`
}

// Kustomize returns the patch of a kustomization.
func (p Patch) Kustomize() kustomize.Patch {
	return kustomize.Patch{Patch: p.Patch, Target: p.Target.kustomize()}
}

type selector struct {
	Group              string `json:"group"`
	Version            string `json:"version"`
	Kind               string `json:"kind"`
	Namespace          string `json:"namespace"`
	Name               string `json:"name"`
	AnnotationSelector string `json:"annotationSelector"`
	LabelSelector      string `json:"labelSelector"`
}

func (s *selector) kustomize() *kustomize.Selector {
	if s == nil {
		return nil
	}
	target := &kustomize.Selector{AnnotationSelector: s.AnnotationSelector, LabelSelector: s.LabelSelector}
	target.Group, target.Version, target.Kind = s.Group, s.Version, s.Kind
	target.Name, target.Namespace = s.Name, s.Namespace
	return target
}

// Decode decodes a part of an object into a struct.
func Decode(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// add adds the fields of a spec to a kustomization.
func (f *files) add(k *kustomize.Kustomization, folder string, spec *additions) error {
	if spec.TargetNamespace != "" {
		k.Namespace = spec.TargetNamespace
	}
	if spec.NamePrefix != "" {
		k.NamePrefix = spec.NamePrefix
	}
	if spec.NameSuffix != "" {
		k.NameSuffix = spec.NameSuffix
	}
	if len(spec.BuildMetadata) > 0 {
		k.BuildMetadata = spec.BuildMetadata
	}
	for _, p := range spec.Patches {
		k.Patches = append(k.Patches, p.Kustomize())
	}
	for _, p := range spec.StrategicMerge {
		k.PatchesStrategicMerge = append(k.PatchesStrategicMerge, kustomize.PatchStrategicMerge(p)) //nolint:staticcheck // for Kustomizations with deprecated fields
	}
	for _, p := range spec.JSON6902 {
		k.PatchesJson6902 = append(k.PatchesJson6902, kustomize.Patch{Patch: string(p.Patch), Target: p.Target.kustomize()}) //nolint:staticcheck // as above
	}
	for _, image := range spec.Images {
		setImage(k, image)
	}
	for _, component := range spec.Components {
		if !local(component) {
			return fmt.Errorf("component %q is not a relative path in the source", component)
		}
		if spec.IgnoreMissingComponents && !f.Exists("/"+path.Join(folder, component)) {
			continue
		}
		k.Components = append(k.Components, component)
	}
	return nil
}

// setImage sets an image of a kustomization. A new tag or digest replaces both the old tag and the
// old digest.
func setImage(k *kustomize.Kustomization, image kustomize.Image) {
	for i := range k.Images {
		own := &k.Images[i]
		if own.Name != image.Name {
			continue
		}
		if image.NewName != "" {
			own.NewName = image.NewName
		}
		if image.NewTag != "" || image.Digest != "" {
			own.NewTag, own.Digest = image.NewTag, image.Digest
		}
		return
	}
	k.Images = append(k.Images, kustomize.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
}

// local reports whether a component is a path in the source and not a URL.
func local(component string) bool {
	lower := strings.ToLower(component)
	for _, prefix := range []string{"git::", "gh:", "git@", "github.com:", "github.com/"} {
		if strings.HasPrefix(lower, prefix) {
			return false
		}
	}
	return !strings.Contains(lower, "://") && !path.IsAbs(component)
}
