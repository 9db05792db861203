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

// pushAttempts bounds the attempts to push while others push to the same branch.
const pushAttempts = 6

// commitManifests commits the component manifests and, in a second commit, the
// sync manifests. It pushes both together before the cluster is changed, so that
// a rejected push leaves the cluster as it was. If others push at the same time,
// it commits again on top of their commits.
func (r *run) commitManifests(ctx context.Context) error {
	if r.plan.ChangeRequest {
		return r.requestChange(ctx)
	}
	for attempt := 1; ; attempt++ {
		r.before = r.headRevision()
		changed, err := r.commit()
		if err != nil {
			return err
		}
		if !changed && r.clone.BranchExists() {
			return nil
		}
		if err = r.push(ctx); !errors.Is(err, gitrepo.ErrNonFastForward) {
			return err
		}
		if attempt == pushAttempts {
			return errBusyBranch(r.plan.Branch, attempt)
		}
		r.progress.Warning("branch %q has new commits: retrying on top of them", r.plan.Branch)
		if err := r.clone.Refresh(ctx); err != nil {
			return err
		}
		r.built = nil
	}
}

func errBusyBranch(branch string, attempts int) error {
	return failure("run the command again when the branch is less busy", "pushing manifests: branch %q received new commits during each of %d attempts", branch, attempts)
}

func (r *run) push(ctx context.Context) error {
	r.progress.Action("pushing manifests to %q", redact.URL(r.host.Access.URL))
	err := r.clone.Push(ctx, func(lost error) {
		r.progress.Warning("connection lost before the server confirmed the push (%s): branch %q has the commits", redact.Text(lost.Error()), r.plan.Branch)
	})
	if err == nil {
		r.progress.Success("pushed manifests")
	}
	return err
}

// prepareRepository creates or updates the repository on the host.
func (r *run) prepareRepository(ctx context.Context) error {
	for _, change := range r.hosted.Changes {
		r.progress.Action("on the Git host: %s", change)
	}
	repository, err := r.plan.Host.Ensure(ctx)
	if err != nil {
		return err
	}
	if len(r.hosted.Changes) > 0 {
		r.progress.Success("Git host configured")
	}
	before := r.host
	r.host = repository
	if r.plan.bySSH() && before.SyncURL != repository.SyncURL {
		// Some hosts report the address of their SSH server only with a repository.
		if err := r.prepareHostKey(ctx); err != nil {
			return err
		}
	}
	if r.hosted.Exists && before.Access.URL == repository.Access.URL {
		return nil
	}
	// The host may have created the repository with a first commit.
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	r.clone.SetRemote(remote)
	r.built = nil
	return r.clone.Refresh(ctx)
}

// pending reports whether the branch lacks a manifest of this run.
func (r *run) pending(repository *gitrepo.Repository) (bool, error) {
	if !repository.BranchExists() {
		return true, nil
	}
	files, err := r.syncFiles(repository)
	if err != nil {
		return false, err
	}
	files[path.Join(r.folder, componentsFile)] = r.components
	for name, content := range files {
		current, err := repository.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err != nil || !bytes.Equal(current, content) {
			return true, nil
		}
	}
	return false, nil
}

// commit adds the commits that the repository lacks, and reports whether it
// added any.
func (r *run) commit() (bool, error) {
	r.progress.Action("generating component manifests")
	r.progress.Success("generated component manifests")
	components := map[string][]byte{path.Join(r.folder, componentsFile): r.components}
	message := strings.Join(strings.Fields("Add Flux "+r.plan.Components.Version+" component manifests"), " ")
	first, err := r.commitFiles("component manifests", message, components)
	if err != nil {
		return false, err
	}
	r.progress.Action("generating sync manifests")
	sync, err := r.syncFiles(r.clone)
	if err != nil {
		return false, err
	}
	r.progress.Success("generated sync manifests")
	second, err := r.commitFiles("sync manifests", "Add Flux sync manifests", sync)
	return first || second, err
}

// commitFiles commits files unless the branch has them already.
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
		r.progress.Success("committed %s to %q (%q)", what, r.clone.Branch(), r.clone.Head())
	default:
		r.progress.Success("%s are up to date", what)
	}
	return changed, nil
}

// syncFiles returns the files of the second commit: the sync manifests, and the
// kustomization of the repository with the two files as resources.
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

// kustomization returns the path of the folder's kustomization and its content
// with the two files as resources.
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
