package rollback

import (
	"context"
	"path"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Reversion is the rollback of a Kustomization by a commit on the branch of its GitRepository.
type Reversion struct {
	Object controllers.ID `json:"object"`
	Source controllers.ID `json:"source"`
	// CurrentRevision is the last attempted revision, and TargetRevision the revision to return to.
	CurrentRevision string `json:"currentRevision,omitempty"`
	TargetRevision  string `json:"targetRevision"`
	// Base is the branch of the source, and Path the directory of the Kustomization, "." for the whole repository.
	Base string `json:"base"`
	Path string `json:"path"`

	// URL is the URL of the source, and Commit the commit of TargetRevision.
	URL    string `json:"-"`
	Commit string `json:"-"`
}

// Revert returns the commit to which the directory of a Kustomization is restored, and its branch. It reads the cluster
// and changes nothing.
func Revert(ctx context.Context, client *kube.Client, t objref.Target, revision string) (*Reversion, error) {
	p, err := read(ctx, client, t)
	if err != nil {
		return nil, err
	}
	field := func(o controllers.Object, name string) string { return controllers.Path{name}.String(o) }
	if p.selects() != "commit" {
		return nil, hint.Errorf("roll back without --pull-request", "%s is not a Git repository", p.Pinned)
	}
	target, err := p.target(revision)
	if err != nil {
		return nil, err
	}
	source := p.pinned.Object
	r := &Reversion{
		Object: p.Object, Source: p.Pinned, CurrentRevision: p.CurrentRevision, TargetRevision: target, Commit: p.value(target),
		URL: field(source, "spec.url"), Base: field(source, "spec.ref.branch"),
		Path: strings.TrimPrefix(path.Join("/", field(p.object.Object, "spec.path")), "/"),
	}
	if r.Path == "" {
		r.Path = "."
	}
	if r.Base == "" || field(source, "spec.ref.tag")+field(source, "spec.ref.semver")+field(source, "spec.ref.name") != "" {
		return nil, hint.Errorf("roll back without --pull-request", "%s does not follow a branch", p.Pinned)
	}
	return r, nil
}

// Title returns the subject of the commit, and the title of the pull request.
func (r *Reversion) Title() string {
	return "Roll back " + r.Object.String() + " to " + controllers.Shorten(r.TargetRevision)
}

// Branch returns the name of the branch with the commit.
func (r *Reversion) Branch() string {
	return "flux-rollback/" + r.Object.Namespace + "-" + r.Object.Name + "-" + r.Commit[:8]
}
