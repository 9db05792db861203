package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

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

// commitManifests commits the components and, in a commit of its own, what
// makes the cluster follow the repository. Both are pushed together and before
// the cluster is touched: a push that the server refuses leaves it as it was.
// When others push at the same time, it starts again from what they pushed.
func (r *run) commitManifests(ctx context.Context) error {
	if r.plan.ChangeRequest {
		return r.requestChange(ctx)
	}
	for attempt := 1; ; attempt++ {
		changed, err := r.commit()
		if err != nil {
			return err
		}
		if !changed && r.clone.Branched() {
			return nil
		}
		if err = r.push(ctx); !errors.Is(err, gitrepo.ErrMoved) {
			return err
		}
		if attempt == pushAttempts {
			return failure("run the command again when fewer others push", "pushing manifests: others have pushed to branch %q %d times meanwhile", r.plan.Branch, attempt)
		}
		r.say.Warning("branch %q has moved: starting again from its newest commit", r.plan.Branch)
		if err := r.clone.Refresh(ctx); err != nil {
			return err
		}
		r.built = nil
	}
}

func (r *run) push(ctx context.Context) error {
	r.say.Action("pushing manifests to %q", redact.URL(r.host.Access.URL))
	err := r.clone.Push(ctx, func(lost error) {
		r.say.Warning("connection lost before the server confirmed the push (%s): branch %q has the commits", redact.Text(lost.Error()), r.plan.Branch)
	})
	if err == nil {
		r.say.Success("pushed manifests")
	}
	return err
}

// prepareRepository has the host make what is missing there.
func (r *run) prepareRepository(ctx context.Context) error {
	for _, change := range r.hosted.Changes {
		r.say.Action("on the Git host: %s", change)
	}
	repository, err := r.plan.Host.Ensure(ctx)
	if err != nil {
		return err
	}
	if len(r.hosted.Changes) > 0 {
		r.say.Success("the Git host is prepared")
	}
	before := r.host
	r.host = repository
	if r.plan.bySSH() && before.SyncURL != repository.SyncURL {
		// A host without any repository cannot tell where its SSH server is.
		if err := r.meet(ctx); err != nil {
			return err
		}
	}
	if r.hosted.Exists && before.Access.URL == repository.Access.URL {
		return nil
	}
	// The host may have put a first commit into the repository that it made.
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	r.clone.Move(remote)
	r.built = nil
	return r.clone.Refresh(ctx)
}

// pending tells whether the branch lacks something that is to be committed.
func (r *run) pending(repository *gitrepo.Repository) (bool, error) {
	if !repository.Branched() {
		return true, nil
	}
	files, err := r.syncFiles(repository)
	if err != nil {
		return false, err
	}
	files[path.Join(r.folder, componentsFile)] = r.components
	for name, content := range files {
		there, err := repository.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err != nil || !bytes.Equal(there, content) {
			return true, nil
		}
	}
	return false, nil
}

// commit adds the commits that the repository lacks, and tells whether it lacked any.
func (r *run) commit() (bool, error) {
	r.say.Action("generating component manifests")
	r.say.Success("generated component manifests")
	components := map[string][]byte{path.Join(r.folder, componentsFile): r.components}
	message := strings.Join(strings.Fields("Add Flux "+r.plan.Components.Version+" component manifests"), " ")
	first, err := r.commitFiles("component manifests", message, components)
	if err != nil {
		return false, err
	}
	r.say.Action("generating sync manifests")
	sync, err := r.syncFiles(r.clone)
	if err != nil {
		return false, err
	}
	r.say.Success("generated sync manifests")
	second, err := r.commitFiles("sync manifests", "Add Flux sync manifests", sync)
	return first || second, err
}

// commitFiles commits files, unless they are there as they should be.
func (r *run) commitFiles(what, message string, files map[string][]byte) (bool, error) {
	if appendix := r.plan.Commit.Appendix; appendix != "" {
		message += "\n\n" + appendix
	}
	changed, err := r.clone.Commit(gitrepo.Change{
		Message: message, Files: files, When: r.plan.Now(), Sign: r.plan.Commit.Sign,
		AuthorName: r.plan.Commit.AuthorName, AuthorEmail: r.plan.Commit.AuthorEmail,
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("committing %s: %w", what, err)
	case changed:
		r.say.Success("committed %s to %q (%q)", what, r.clone.Branch(), r.clone.Head())
	default:
		r.say.Success("%s are up to date", what)
	}
	return changed, nil
}

// syncFiles returns the files of the second commit, which depend on what
// stands in the repository.
func (r *run) syncFiles(repository *gitrepo.Repository) (map[string][]byte, error) {
	sync, err := r.syncManifests()
	if err != nil {
		return nil, err
	}
	name, kustomization, err := r.kustomization(repository)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{path.Join(r.folder, syncFile): sync, name: kustomization}, nil
}

// kustomization returns the path and the contents of the folder's
// kustomization, in which the two files are listed.
func (r *run) kustomization(repository *gitrepo.Repository) (string, []byte, error) {
	for _, name := range []string{kustomizationFile, "kustomization.yml", "Kustomization"} {
		file := path.Join(r.folder, name)
		data, err := repository.ReadFile(file)
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
