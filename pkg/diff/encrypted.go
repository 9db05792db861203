package diff

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
)

// unreadable judges an object that is encrypted and stays so: what is live
// cannot tell whether it is the same, only the file that was applied last can.
func (c *comparison) unreadable(ctx context.Context, r kube.Resource, ref Ref, o item) (Change, error) {
	change := Change{Object: ref, Action: Encrypted, Reason: "encrypted, cannot compare"}
	if !c.decrypts() && isSecret(ref) {
		change.Action, change.Reason = Failed, "it is encrypted with SOPS, and the Kustomization has no spec.decryption"
		return change, nil
	}
	live, err := c.live.get(ctx, scopeOf(r, ref), ref.Name)
	if err != nil {
		return change, fmt.Errorf("looking for %s: %w", ref, err)
	}
	if live == nil {
		change.Action, change.Reason = Created, ""
		change.Notes = []string{"encrypted: not validated"}
		return change, nil
	}
	applied, err := c.lastApplied(ctx)
	if err != nil || applied == nil {
		if err != nil {
			change.Notes = []string{"what was applied cannot be had: " + err.Error()}
		}
		return change, nil
	}
	for _, last := range applied.Objects {
		if RefOf(last.Unstructured).identity() != ref.identity() {
			continue
		}
		if apiequality.Semantic.DeepEqual(last.Object, o.built.Object) {
			return Change{Object: ref, Action: Unchanged, Notes: []string{"encrypted: the file is the one that was applied; whether the live object still holds it is not known"}}, nil
		}
		change.Action, change.Reason = Changed, ""
		change.Notes = []string{"encrypted: the file is another one than was applied"}
	}
	return change, nil
}

// lastApplied asks for what was applied, once.
func (c *comparison) lastApplied(ctx context.Context) (*build.Result, error) {
	if c.Applied == nil {
		return nil, nil
	}
	c.once.Do(func() { c.last, c.lastErr = c.Applied(ctx) })
	return c.last, c.lastErr
}

// decrypts tells whether the controller decrypts what it builds.
func (p *plan) decrypts() bool {
	spec, _ := p.Kustomization.Object["spec"].(map[string]any)
	return spec["decryption"] != nil
}
