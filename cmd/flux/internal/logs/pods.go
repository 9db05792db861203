package logs

import (
	"context"
	"maps"
	"slices"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/treeview"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/logs"
	"github.com/fluxkit/flux/pkg/tree"
)

// errNoPods is returned if no pod can have a log.
var errNoPods = hint.Errorf("run flux tree to list the managed objects", "the selected objects manage no pods")

// workloads returns the namespaces of the objects that roots manage, and a function that selects their pods, also those that
// a rollout creates later.
func workloads(ctx context.Context, a *app.App, client *kube.Client, roots []objref.Target) ([]string, func(controllers.Object) []logs.Pod, error) {
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	managed, namespaces, elsewhere := map[controllers.ID]bool{}, map[string]bool{}, false
	for _, root := range roots {
		if !root.Kind.Has(controllers.Tree) || !root.Kind.Applies() {
			return nil, nil, hint.Errorf("select a Kustomization or a HelmRelease", "%s does not manage pods", root.Named())
		}
		t, err := tree.Build(ctx, client, root.Named(), tree.Options{})
		if err != nil {
			return nil, nil, objref.NotFound(err, root)
		}
		if err := treeview.ReportGaps(a, t.Gaps); err != nil {
			return nil, nil, err
		}
		t.Root.Each(func(n *tree.Node) {
			if elsewhere = elsewhere || n.Remote(); n.Remote() || n.Object.Namespace == "" {
				return
			}
			managed[n.Object] = true
			namespaces[n.Object.Namespace] = true
		})
	}
	if elsewhere {
		a.UI.Warning("pods in other clusters are not included: run flux logs with the kubeconfig of these clusters")
	}
	return slices.Sorted(maps.Keys(namespaces)), func(pod controllers.Object) []logs.Pod {
		if managed[logs.Workload(pod)] || managed[controllers.IDOf(pod)] {
			return logs.Containers(pod)
		}
		return nil
	}, nil
}
