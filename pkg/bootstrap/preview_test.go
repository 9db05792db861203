package bootstrap_test

import (
	"os"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/pkg/controllers"
)

func (w *world) dryRun(plan bootstrap.Plan) bootstrap.Preview {
	w.t.Helper()
	var c changes
	cfg := rest.CopyConfig(w.cluster.Client.Config)
	cfg.Wrap(c.wrap)
	var output progress
	p, err := bootstrap.DryRun(w.t.Context(), cfg, plan, &output)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, output.text.String())
	}
	if kept := slices.DeleteFunc(c.seen, func(request string) bool { return strings.Contains(request, "dryRun=All") }); len(kept) > 0 {
		w.t.Errorf("the dry run changed the cluster: %v", kept)
	}
	if strings.Contains(output.text.String(), "committed") {
		w.t.Errorf("the dry run reports commits:\n%s", output.text.String())
	}
	return p
}

func actions(p bootstrap.Preview) map[string]int {
	count := map[string]int{}
	for _, o := range p.Cluster {
		count[o.Action]++
	}
	return count
}

// previewed: a dry run lists the changes on the host, in the repository and on
// the cluster, and makes none.
func previewed(w *world) {
	if err := os.RemoveAll(w.bare); err != nil {
		w.t.Fatal(err)
	}
	h := w.host()
	p := w.dryRun(w.on(h))
	if diff := cmp.Diff([]string{"create the private repository previewed"}, p.Host); diff != "" {
		w.t.Error(diff)
	}
	if got := strings.Count(p.Patch, "\nnew file mode 100644\n"); got != 3 || h.exists() {
		w.t.Errorf("%d files would be new, and the repository exists: %t", got, h.exists())
	}
	h.wantDone(w.t)
	w.mustRun(w.on(h))
	p = w.dryRun(w.on(h))
	if p.Patch != "" || len(p.Host) != 0 || actions(p)["unchanged"] != len(p.Cluster) {
		w.t.Errorf("after a run, the dry run lists changes: %v, %v, %s", p.Host, p.Cluster, p.Patch)
	}
	plan := w.on(h)
	plan.Sync.Interval *= 2
	p = w.dryRun(plan)
	changed := slices.DeleteFunc(p.Cluster, func(o bootstrap.ObjectPreview) bool { return o.Action == "unchanged" })
	if diff := cmp.Diff([]bootstrap.ObjectPreview{{ID: controllers.FluxID("GitRepository", "previewed", "previewed"), Action: "configured"}}, changed); diff != "" {
		w.t.Error(diff)
	}
	if !strings.Contains(p.Patch, "\n-  interval: 1m0s\n+  interval: 2m0s\n") || strings.Count(p.Patch, "diff --git") != 1 {
		w.t.Errorf("the patch is:\n%s", p.Patch)
	}
	if diff := cmp.Diff(history, w.log()); diff != "" {
		w.t.Error(diff)
	}
}
