package dryrun

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// unreadable returns the change of an object that cannot be decrypted. Its live values cannot be
// compared, so its file is compared with the file of the last applied revision.
func (c *comparison) unreadable(ctx context.Context, r kube.Resource, ref controllers.VersionedID, o item) (diff.Change, error) {
	change := diff.Change{Object: ref, Action: diff.Encrypted, Reason: "encrypted, cannot compare"}
	if !c.decrypts() && ref.IsSecret() {
		change.Action, change.Reason = diff.Failed, "encrypted with SOPS, but the Kustomization has no spec.decryption"
		return change, nil
	}
	live, err := c.live.get(ctx, scopeOf(r, ref), ref.Name)
	if err != nil {
		return change, fmt.Errorf("reading %s: %w", ref, err)
	}
	if live == nil {
		change.Action, change.Reason = diff.Created, ""
		change.Notes = []string{"encrypted: not validated"}
		return change, nil
	}
	applied, err := c.lastApplied(ctx)
	if err != nil || applied == nil {
		if err != nil {
			change.Notes = []string{"cannot read the last applied revision: " + err.Error()}
		}
		return change, nil
	}
	for _, last := range applied.Objects {
		if controllers.IDOf(last.Unstructured.Object) != ref.ID {
			continue
		}
		if apiequality.Semantic.DeepEqual(last.Object, o.built.Object) {
			return diff.Change{Object: ref, Action: diff.Unchanged, Notes: []string{"encrypted: the file equals the last applied one; the live object was not compared"}}, nil
		}
		change.Action, change.Reason = diff.Changed, ""
		change.Notes = []string{"encrypted: the file differs from the last applied one"}
	}
	return change, nil
}

// lastApplied returns the build of the last applied revision. It is built once.
func (c *comparison) lastApplied(ctx context.Context) (*build.Result, error) {
	if c.Applied == nil {
		return nil, nil
	}
	c.once.Do(func() { c.last, c.lastErr = c.Applied(ctx) })
	return c.last, c.lastErr
}

// decrypts reports whether the controller decrypts the build.
func (p *plan) decrypts() bool {
	spec, _ := p.Owner.Object["spec"].(map[string]any)
	return spec["decryption"] != nil
}
