package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// File is a file of an artifact. Size is in bytes, and Digest has the form sha256:HEX.
type File struct {
	Path   string `json:"path"`
	Size   int    `json:"size"`
	Digest string `json:"digest"`
}

// Files returns the files of a tree, sorted by path. It reads them one by one.
func Files(ctx context.Context, tree fs.FS) ([]File, error) {
	files := []File{}
	err := filetree.Walk(ctx, tree, func(name string, entry fs.DirEntry) error {
		if entry.IsDir() {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		sum := sha256.Sum256(content)
		files = append(files, File{name, len(content), "sha256:" + hex.EncodeToString(sum[:])})
		return err
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, err
}

// Action is the change of a file or artifact.
type Action string

// The actions.
const (
	Created Action = "created"
	Changed Action = "changed"
	Deleted Action = "deleted"
)

// Sign returns the sign to print before a path.
func (a Action) Sign() string {
	switch a {
	case Created:
		return "+"
	case Deleted:
		return "-"
	default:
		return "±"
	}
}

// Change is a file that is added to an artifact, removed from it or changed.
type Change struct {
	Path   string `json:"path"`
	Action Action `json:"action"`
}

// Changes returns the files that differ, sorted by path. File modes are not compared.
func Changes(before, after []File) []Change {
	changes := []Change{}
	digests := map[string]string{}
	for _, f := range before {
		digests[f.Path] = f.Digest
	}
	for _, f := range after {
		switch digest, there := digests[f.Path]; {
		case !there:
			changes = append(changes, Change{f.Path, Created})
		case digest != f.Digest:
			changes = append(changes, Change{f.Path, Changed})
		}
		delete(digests, f.Path)
	}
	for path := range digests {
		changes = append(changes, Change{path, Deleted})
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// Difference is an ExternalArtifact that an ArtifactGenerator would produce, change or delete, with the files in which it differs
// from the stored artifact.
type Difference struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Action    Action   `json:"action"`
	Files     []Change `json:"files"`
}

// Compare compares the ExternalArtifacts that [Of] renders with the artifacts that source-watcher stores. It returns the
// artifacts that differ, including artifacts that the generator would no longer produce.
func Compare(ctx context.Context, b *desired.Builder, namespace, name string) ([]Difference, error) {
	all, err := Of(ctx, b, namespace, name)
	if err != nil {
		return nil, err
	}
	former, err := produced(ctx, b, namespace, name)
	if err != nil {
		return nil, err
	}
	client, err := b.Connect()
	if err != nil {
		return nil, err
	}
	sources := &upstream.StoredSources{Client: client, Home: b.FluxNamespace}
	differences := []Difference{}
	add := func(id controllers.ID, action Action, files []Change) {
		differences = append(differences, Difference{id.Name, id.Namespace, action, files})
	}
	for _, artifact := range all {
		former = slices.DeleteFunc(former, func(id controllers.ID) bool { return id == artifact.ID })
		before, exists, err := stored(ctx, sources, artifact.ID)
		if err != nil {
			return nil, err
		}
		after, err := Files(ctx, artifact.Files)
		if err != nil {
			return nil, err
		}
		switch changes := Changes(before, after); {
		case !exists:
			add(artifact.ID, Created, changes)
		case len(changes) > 0:
			add(artifact.ID, Changed, changes)
		}
	}
	for _, id := range former {
		before, exists, err := stored(ctx, sources, id)
		if err != nil {
			return nil, err
		}
		if exists {
			add(id, Deleted, Changes(before, nil))
		}
	}
	return differences, nil
}

// stored returns the files of an ExternalArtifact of the cluster, and false if it does not exist.
func stored(ctx context.Context, sources *upstream.StoredSources, id controllers.ID) (files []File, exists bool, err error) {
	tree, err := sources.Tree(ctx, id)
	var missing *objref.NotFoundError
	if errors.As(err, &missing) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	files, err = Files(ctx, tree)
	return files, true, err
}

// produced returns the ExternalArtifacts that an ArtifactGenerator of the cluster has produced.
func produced(ctx context.Context, b *desired.Builder, namespace, name string) ([]controllers.ID, error) {
	live, err := b.LiveOrNil(ctx, controllers.FluxID(generator.Kind, namespace, name))
	if err != nil || live == nil {
		return nil, err
	}
	inventory := controllers.Ref{Path: controllers.Path{"status.inventory[]"}, Kinds: []string{generator.Artifact}, CrossNamespace: true}
	return inventory.Targets(live.Object), nil
}
