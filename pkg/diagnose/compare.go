package diagnose

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
	"github.com/fluxkit/flux/pkg/tree"
)

// compare compares a root cause with the live state, because conditions report the past. It evaluates the rule again with the
// live objects of the failure. Remote clusters are not read.
func (s *diagnosis) compare(ctx context.Context, root *rules.Finding, sub rules.Subject) {
	remote := controllers.IsRemote(sub.Object)
	switch root.Code {
	case "health":
		if !remote {
			compareHealth(ctx, s, root, sub)
		}
		return
	case "suspended":
		findSuspender(ctx, s.cluster, root, sub)
		return
	}
	found, ok := sub.Classify()
	if !ok || !found.Live || found.Finding.Code != root.Code {
		return
	}
	switch f := sub.Failure(); {
	case f.Type == failure.NoMatch && !remote:
		sub.Live.Served = s.cluster.Served(ctx, f.Group(), f.Named.Kind)
		sub.Live.Providers = s.cluster.Providers(ctx, sub.ID(), f.Group())
		sub.Live.Unapplied = unapplied(ctx, s, sub)
	case f.Type == failure.Unauthorized && !remote:
		sub.Live.NoAccount = isAccountMissing(ctx, s.cluster, f.User)
	case f.Type == failure.NoPath:
		sub.Live.Ignored = ignoredBy(ctx, s.cluster, sub)
	}
	sub.Live.File = s.file(ctx, sub)
	found, _ = sub.Classify()
	root.Code, root.Message, root.Fixes = found.Finding.Code, found.Finding.Message, found.Finding.Fixes
}

// checkedHealth is the maximum number of objects to read for a failed health check.
const checkedHealth = 5

// compareHealth reads the objects of a failed health check. If all of them have become ready, the check is the only problem left.
// Otherwise their status becomes a detail.
func compareHealth(ctx context.Context, s *diagnosis, root *rules.Finding, sub rules.Subject) {
	named := sub.Failure().Objects
	entries := controllers.Inventory(sub.Object)
	ready := 0
	for _, h := range named[:min(len(named), checkedHealth)] {
		i := slices.IndexFunc(entries, func(e controllers.VersionedID) bool {
			return e.Kind == h.Kind && e.Name == h.Name && (h.Namespace == "" || e.Namespace == h.Namespace)
		})
		if i < 0 {
			continue
		}
		o, err := s.cluster.Object(ctx, entries[i])
		if err != nil || o == nil {
			continue
		}
		if f, deleting := s.installation.deletion(entries[i].ID, o); deleting {
			if f.Object.IsNamespace() {
				details, fixes := rules.NamespaceConditions(o)
				f.Details, f.Fixes = append(f.Details, details...), append(fixes, f.Fixes...)
			}
			root.Details = append(append(root.Details, f.Object.String()+": "+f.Message), f.Details...)
			root.Fixes = f.Fixes
			continue
		}
		status, message := tree.StatusOf(o)
		switch custom := rules.HasHealthExpression(sub, o); {
		case status == tree.Ready && !custom:
			ready++
		case custom:
			root.Details = append(root.Details, rules.DescribeStatus(entries[i].ID, o))
			root.Fixes = []string{fmt.Sprintf("correct %s, or .spec.healthCheckExprs of %s", entries[i].ID, sub)}
		case message != "" && !strings.Contains(root.Message, message):
			root.Details = append(root.Details, fmt.Sprintf("%s: %s", entries[i].ID, failure.OneLine(message)))
		}
	}
	if len(named) > 0 && ready == len(named) {
		*root = sub.Recovered(*root)
	}
}

// findSuspender adds a fix if the applier of a suspended object sets spec.suspend and would set it again.
func findSuspender(ctx context.Context, c *observe.Cluster, root *rules.Finding, sub rules.Subject) {
	owner, applied := controllers.Manager(sub.Object)
	if !applied || len(sub.Kind.Suspension.Field) == 0 {
		return
	}
	o, err := c.Client.Get(ctx, kube.Of(sub.Kind), root.Object.Namespace, root.Object.Name)
	if err != nil {
		return
	}
	applier, _ := owner.Flux()
	for _, m := range managedfields.Of(o) {
		if m.Name == applier.Manager && m.Owns([]string{"f:spec", "f:suspend"}) {
			root.Message += " by its manifest, which " + owner.String() + " applies"
			root.Fixes = []string{fmt.Sprintf("remove .spec.suspend from the manifest of %s in the source of %s, which otherwise suspends it again at its next reconciliation", root.Object, owner)}
		}
	}
}

// isAccountMissing reports whether a user is a ServiceAccount that does not exist.
func isAccountMissing(ctx context.Context, c *observe.Cluster, user string) bool {
	rest, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, ok := strings.Cut(rest, ":")
	if !is || !ok {
		return false
	}
	_, err := c.Client.Get(ctx, kube.BuiltIn("v1", "ServiceAccount"), namespace, name)
	return apierrors.IsNotFound(err)
}

// ignoredBy returns the ignore rule that excludes the path of a Kustomization from the artifact of its source,
// or "" if there is none.
func ignoredBy(ctx context.Context, c *observe.Cluster, sub rules.Subject) string {
	directory := strings.Trim(path.Clean("/"+sub.Text("spec.path")), "/")
	for _, source := range sub.Kind.SourceOf(sub.Object) {
		o, err := c.Flux(ctx, source)
		if err != nil || o == nil {
			continue
		}
		if rule := excluding(controllers.Path{"spec.ignore"}.String(o), ".spec.ignore of "+source.String(), directory); rule != "" {
			return rule
		}
		files, err := c.Artifact(ctx, source, o)
		if err != nil {
			continue
		}
		text, err := fs.ReadFile(files, sourceignore.IgnoreFile)
		if err != nil {
			continue
		}
		if rule := excluding(string(text), "the "+sourceignore.IgnoreFile+" file in the root directory of "+source.String(), directory); rule != "" {
			return rule
		}
	}
	return ""
}

// excluding returns the rule in a text that excludes a directory or all files in it, or "". in is the field or file with the text.
func excluding(text, in, directory string) string {
	rules := sourcetree.ReadRules(text, nil, in)
	rule, excluded := sourcetree.Excluding(rules, directory, true)
	if !excluded {
		rule, excluded = sourcetree.Excluding(rules, directory+"/manifest.yaml", false)
	}
	if !excluded {
		return ""
	}
	return rule.String()
}
