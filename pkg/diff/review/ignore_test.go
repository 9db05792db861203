package review_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

func TestIgnore(t *testing.T) {
	t.Parallel()
	chart := func(version, more string) string {
		return one("Deployment", "apps/v1", "metadata: {name: a, namespace: web, labels: {app: a, helm.sh/chart: app-"+version+"}}\n"+
			"spec: {replicas: 1, template: {metadata: {annotations: {checksum/config: '"+version+"'}}, spec: {containers: [{name: app, image: a"+more+"}]}}}\n")
	}
	bare := one("ConfigMap", "v1", named)
	labeled := one("ConfigMap", "v1", "metadata: {name: a, namespace: web, labels: {helm.sh/chart: a-1}}\n")
	for name, c := range map[string]struct {
		before, after string
		patterns      []string
		action        diff.Action
		fields        []string
		n             int
	}{
		"defaults":           {chart("1", ""), chart("2", ""), review.DefaultIgnored, diff.Ignored, nil, 2},
		"no patterns":        {chart("1", ""), chart("2", ""), nil, diff.Changed, []string{"metadata.labels.helm.sh/chart", "spec.template.metadata.annotations.checksum/config"}, 0},
		"another change":     {chart("1", ""), chart("2", ", tty: true"), review.DefaultIgnored, diff.Changed, []string{"spec.template.spec.containers.app.tty"}, 2},
		"only another":       {chart("1", ""), chart("1", ", tty: true"), review.DefaultIgnored, diff.Changed, []string{"spec.template.spec.containers.app.tty"}, 0},
		"element of a list":  {chart("1", ""), chart("1", ", tty: true"), []string{"containers.*.tty"}, diff.Ignored, nil, 1},
		"whole path":         {chart("1", ""), chart("1", ", tty: true"), []string{"spec.template.spec.containers.app.tty"}, diff.Ignored, nil, 1},
		"part of a name":     {chart("1", ""), chart("1", ", tty: true"), []string{"ty"}, diff.Changed, []string{"spec.template.spec.containers.app.tty"}, 0},
		"dot is not any":     {chart("1", ""), chart("2", ""), []string{"labels.helm-sh/chart", "annotations.checksum/*"}, diff.Changed, []string{"metadata.labels.helm.sh/chart"}, 1},
		"start of a path":    {chart("1", ""), chart("2", ""), []string{"metadata.labels", "annotations"}, diff.Ignored, nil, 2},
		"label in a new map": {bare, labeled, review.DefaultIgnored, diff.Ignored, nil, 1},
		"label was the last": {labeled, bare, review.DefaultIgnored, diff.Ignored, nil, 1},
		"created":            {"", labeled, review.DefaultIgnored, diff.Created, nil, 0},
		"removed":            {labeled, "", review.DefaultIgnored, diff.Pruned, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := compared(t, owner, c.before, c.after)
			review.Ignore(results, c.patterns)
			change := results[0].Changes[0]
			n := change.IgnoredFields
			var fields []string
			for _, f := range change.Fields {
				fields = append(fields, f.Path)
			}
			if d := cmp.Diff(c.fields, fields); d != "" || change.Action != c.action || n != c.n {
				t.Errorf("%s, %d ignored, fields -want +got:\n%s", change.Action, n, d)
			}
			if change.Different() != (c.action != diff.Ignored) {
				t.Errorf("different: %t", change.Different())
			}
		})
	}
}

// TestIgnoreKeepsDangers checks that a danger is reported even if its field is ignored.
func TestIgnoreKeepsDangers(t *testing.T) {
	t.Parallel()
	results := compared(t, owner, deployment("a:1.0.0", ""), deployment("a:2.0.0", ""))
	review.Apply(results, nil)
	review.Ignore(results, []string{"image"})
	if d := cmp.Diff([]string{"major-image-update: a 1.0.0 → 2.0.0"}, found(results)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
