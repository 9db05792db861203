package artifacts

import (
	"bytes"
	"cmp"
	"context"
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

// Action is what happens to a file or artifact.
type Action string

// The actions.
const (
	Created Action = "created"
	Changed Action = "changed"
	Deleted Action = "deleted"
)

// Sign returns the sign of an action in front of a path.
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

// Change is a file that an artifact gains or loses, or whose content changes.
type Change struct {
	Path   string `json:"path"`
	Action Action `json:"action"`
}

// Difference is an ExternalArtifact that an ArtifactGenerator would produce, change or delete, with the files in which it differs
// from the stored artifact.
type Difference struct {
	ID     controllers.ID
	Action Action
	Files  []Change
}

// Compare compares the ExternalArtifacts that [Of] renders with those that source-watcher stores. It returns the artifacts that
// differ, and those that the generator has produced and would not produce any more.
func Compare(ctx context.Context, b *desired.Builder, namespace, name string) ([]Difference, error) {
	all, err := Of(ctx, b, namespace, name)
	if err != nil {
		return nil, err
	}
	client, err := b.Connect()
	if err != nil {
		return nil, err
	}
	stored := &upstream.StoredSources{Client: client, Home: b.FluxNamespace}
	former, err := produced(ctx, b, namespace, name)
	if err != nil {
		return nil, err
	}
	var differences []Difference
	for _, artifact := range all {
		former = slices.DeleteFunc(former, func(id controllers.ID) bool { return id == artifact.ID })
		files, err := Files(ctx, artifact.Files)
		if err != nil {
			return nil, err
		}
		d, err := compare(ctx, stored, artifact.ID, files)
		if err != nil {
			return nil, err
		}
		differences = append(differences, d)
	}
	for _, id := range former {
		d, err := compare(ctx, stored, id, nil)
		if err != nil {
			return nil, err
		}
		if d.Action == Changed {
			d.Action = Deleted
		}
		differences = append(differences, d)
	}
	return slices.DeleteFunc(differences, func(d Difference) bool { return d.Action == "" }), nil
}

// produced returns the ExternalArtifacts that an ArtifactGenerator of the cluster has produced.
func produced(ctx context.Context, b *desired.Builder, namespace, name string) ([]controllers.ID, error) {
	id := controllers.FluxID(generator.Kind, namespace, name)
	live, err := b.LiveOrNil(ctx, id)
	if err != nil || live == nil {
		return nil, err
	}
	var all []controllers.ID
	list, _ := controllers.Path{"status.inventory"}.Lookup(live.Object)
	entries, _ := list.([]any)
	for _, entry := range entries {
		if e, ok := entry.(map[string]any); ok {
			text := func(field string) string { return controllers.Path{field}.String(e) }
			all = append(all, controllers.FluxID(generator.Artifact, cmp.Or(text("namespace"), namespace), text("name")))
		}
	}
	return all, nil
}

// compare compares files with a stored artifact.
func compare(ctx context.Context, stored *upstream.StoredSources, id controllers.ID, files map[string][]byte) (Difference, error) {
	d := Difference{ID: id}
	tree, err := stored.Tree(ctx, id)
	var missing *objref.NotFoundError
	if errors.As(err, &missing) {
		d.Files = Changes(nil, files)
		if files != nil {
			d.Action = Created
		}
		return d, nil
	}
	if err != nil {
		return d, err
	}
	before, err := Files(ctx, tree)
	if d.Files = Changes(before, files); len(d.Files) > 0 {
		d.Action = Changed
	}
	return d, err
}

// Files returns the contents of the files of a tree, by path.
func Files(ctx context.Context, tree fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filetree.Walk(ctx, tree, func(name string, entry fs.DirEntry) (err error) {
		if !entry.IsDir() {
			files[name], err = fs.ReadFile(tree, name)
		}
		return err
	})
	return files, err
}

// Changes returns the files that differ, sorted by path.
func Changes(before, after map[string][]byte) []Change {
	var changes []Change
	for path, content := range after {
		switch old, there := before[path]; {
		case !there:
			changes = append(changes, Change{path, Created})
		case !bytes.Equal(old, content):
			changes = append(changes, Change{path, Changed})
		}
	}
	for path := range before {
		if _, there := after[path]; !there {
			changes = append(changes, Change{path, Deleted})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}
