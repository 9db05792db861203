package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/redact"
)

// The files that bootstrap writes.
const (
	componentsFile    = "gotk-components.yaml"
	syncFile          = "gotk-sync.yaml"
	kustomizationFile = "kustomization.yaml"
)

// pushAttempts bounds how often a push is made anew because others push to
// the same branch at the same time.
const pushAttempts = 6

func (r *run) commitComponents(ctx context.Context) error {
	r.say.Action("generating component manifests")
	r.say.Success("generated component manifests")
	files := func() (map[string][]byte, error) {
		return map[string][]byte{path.Join(r.folder, componentsFile): r.components}, nil
	}
	message := fmt.Sprintf("Add Flux %s component manifests", r.plan.Components.Version)
	return r.publish(ctx, "component manifests", message, files)
}

func (r *run) commitSync(ctx context.Context) error {
	r.say.Action("generating sync manifests")
	r.say.Success("generated sync manifests")
	return r.publish(ctx, "sync manifests", "Add Flux sync manifests", r.syncFiles)
}

// syncFiles returns the files of the second commit, which depend on what
// stands in the repository.
func (r *run) syncFiles() (map[string][]byte, error) {
	sync, err := r.syncManifests()
	if err != nil {
		return nil, err
	}
	name, kustomization, err := r.kustomization()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{path.Join(r.folder, syncFile): sync, name: kustomization}, nil
}

// kustomization returns the path and the contents of the folder's
// kustomization, in which the two files are listed.
func (r *run) kustomization() (string, []byte, error) {
	for _, name := range []string{kustomizationFile, "kustomization.yml", "Kustomization"} {
		file := path.Join(r.folder, name)
		data, err := r.clone.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		edited, err := addResources(data, componentsFile, syncFile)
		if err != nil {
			return "", nil, fmt.Errorf("adding the manifests to %s: %w", file, err)
		}
		return file, edited, nil
	}
	return path.Join(r.folder, kustomizationFile), newKustomization(), nil
}

// publish commits and pushes files, unless they are there as they should be.
// When others push at the same time, it starts again from what they pushed.
func (r *run) publish(ctx context.Context, what, message string, files func() (map[string][]byte, error)) error {
	if appendix := r.plan.Commit.Appendix; appendix != "" {
		message += "\n\n" + appendix
	}
	for attempt := 1; ; attempt++ {
		contents, err := files()
		if err != nil {
			return err
		}
		changed, err := r.clone.Commit(gitrepo.Change{
			Message: message, Files: contents, When: r.plan.Now(), Sign: r.plan.Commit.Sign,
			AuthorName: r.plan.Commit.AuthorName, AuthorEmail: r.plan.Commit.AuthorEmail,
		})
		if err != nil {
			return fmt.Errorf("committing %s: %w", what, err)
		}
		if !changed && r.clone.Branched() {
			r.say.Success("%s are up to date", what)
			return nil
		}
		r.say.Success("committed %s to %q (%q)", what, r.plan.Branch, r.clone.Head())
		r.say.Action("pushing %s to %q", what, redact.URL(r.host.Access.URL))
		err = r.clone.Push(ctx)
		if !errors.Is(err, gitrepo.ErrMoved) {
			return err
		}
		if attempt == pushAttempts {
			return failure("run the command again when fewer others push", "pushing %s: others have pushed to branch %q %d times meanwhile", what, r.plan.Branch, attempt)
		}
		r.say.Warning("branch %q has moved: starting again from its newest commit", r.plan.Branch)
		if err := r.clone.Refresh(ctx); err != nil {
			return err
		}
		r.built = nil
	}
}
