package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/recall"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// FileSystem is the files of a source that kustomize reads.
type FileSystem = recall.FileSystem

// Kustomizer runs kustomize in a separate process with a memory limit, and kills it when the context ends.
type Kustomizer interface {
	// Execute executes each template of a ResourceSet with each set of inputs, and returns the texts of each template.
	Execute(ctx context.Context, templates []Template, inputs []map[string]any) ([][]string, error)
	// Kustomize returns the objects of a directory as JSON.
	Kustomize(ctx context.Context, folder string, from FileSystem) ([][]byte, error)
	// Allows reports whether bases may be fetched from a host.
	Allows(host string) bool
}

// Template is a template of a ResourceSet.
type Template struct {
	// Name is the field with the template, for messages.
	Name string `json:"name"`
	Text string `json:"text"`
}

// Kustomize builds a directory in this process, without limits of its own. Clones of remote bases,
// which kustomize creates in temporary directories, are read from disk.
func Kustomize(folder string, from FileSystem) (objects [][]byte, err error) {
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	source := &readOnly{source: from}
	defer func() {
		// A panic caused by one file must not terminate a program that builds many directories.
		if problem := recover(); problem != nil {
			err = fmt.Errorf("kustomize panicked: %v", problem)
		}
		if source.schema {
			openapi.ResetOpenAPI()
		}
	}()
	// As in the controller, files of the whole source may be used and plugins may not.
	options := &krusty.Options{
		LoadRestrictions: kustomize.LoadRestrictionsNone,
		PluginConfig:     kustomize.DisabledPluginConfig(),
	}
	built, err := krusty.MakeKustomizer(options).Run(source, folder)
	if err != nil {
		return nil, err
	}
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", resource.CurId(), err)
		}
		objects = append(objects, content)
	}
	return objects, nil
}

var errReadOnly = errors.New("the file system of a build is read-only")

// readOnly implements filesys.FileSystem for a source and for the clones of remote bases, which
// kustomize creates in temporary directories and removes.
type readOnly struct {
	source FileSystem
	// schema is set if a kustomization has a custom OpenAPI schema.
	schema bool
}

var _ filesys.FileSystem = (*readOnly)(nil)

// at returns the file system for a path: the disk for the directories into which kustomize clones remote bases,
// otherwise the source.
func (r *readOnly) at(name string) FileSystem {
	if strings.HasPrefix(name, filepath.Join(os.TempDir(), "kustomize-")) {
		return filesys.MakeFsOnDisk()
	}
	return r.source
}

// IsDir implements filesys.FileSystem.
func (r *readOnly) IsDir(name string) bool { return r.at(name).IsDir(name) }

// Exists implements filesys.FileSystem.
func (r *readOnly) Exists(name string) bool { return r.at(name).Exists(name) }

// ReadFile implements filesys.FileSystem.
func (r *readOnly) ReadFile(name string) ([]byte, error) {
	data, err := r.at(name).ReadFile(name)
	if err == nil && inspect.IsKustomizationFile(name) && bytes.Contains(data, []byte("openapi")) && !r.schema {
		// A custom schema is added to the built-in one, which must be loaded first.
		r.schema = true
		openapi.Schema()
	}
	return data, err
}

// ReadDir implements filesys.FileSystem.
func (r *readOnly) ReadDir(name string) ([]string, error) { return r.at(name).ReadDir(name) }

// Glob implements filesys.FileSystem.
func (r *readOnly) Glob(pattern string) ([]string, error) { return r.at(pattern).Glob(pattern) }

// CleanedAbs implements filesys.FileSystem.
func (r *readOnly) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if disk, ok := r.at(name).(filesys.FileSystem); ok {
		return disk.CleanedAbs(name)
	}
	clean := path.Clean("/" + filepath.ToSlash(name))
	if r.IsDir(clean) {
		return filesys.ConfirmedDir(clean), "", nil
	}
	if !r.Exists(clean) {
		return "", "", fmt.Errorf("%s not found in the source", sourcetree.Clean(clean))
	}
	return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
}

// RemoveAll implements filesys.FileSystem: kustomize removes its clones.
func (r *readOnly) RemoveAll(name string) error {
	if disk, ok := r.at(name).(filesys.FileSystem); ok {
		return disk.RemoveAll(name)
	}
	return errReadOnly
}

// Create implements filesys.FileSystem.
func (r *readOnly) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir implements filesys.FileSystem.
func (r *readOnly) Mkdir(string) error { return errReadOnly }

// MkdirAll implements filesys.FileSystem.
func (r *readOnly) MkdirAll(string) error { return errReadOnly }

// WriteFile implements filesys.FileSystem.
func (r *readOnly) WriteFile(string, []byte) error { return errReadOnly }

// Open implements filesys.FileSystem.
func (r *readOnly) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Walk implements filesys.FileSystem.
func (r *readOnly) Walk(string, filepath.WalkFunc) error { return errReadOnly }
