package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
	"github.com/fluxkit/flux/pkg/testrun/stub"
)

// failing is a report with a finding of each type, and text of others that could be taken for markup.
func failing() *examine.Report {
	ref := func(kind, name string) controllers.ID {
		return controllers.ID{Kind: kind, Namespace: "apps", Name: name}
	}
	return &examine.Report{
		Flux: "2.9.6", Path: "clusters/demo", Result: settle.NotReady, Seconds: 2,
		Objects: []settle.Status{
			{Object: ref("GitRepository", "fleet"), Status: settle.Ready, Order: 1, After: 1.5, Took: 1},
			{Object: ref("Kustomization", "app"), Status: settle.NotReady, Message: "build failed\n::error::<b>"},
			{Object: ref("Kustomization", "next"), Status: settle.NotReconciled, Message: "dependency not ready"},
			{Object: ref("Alert", "chat"), Status: settle.Suspended, Message: "nothing is sent"},
		},
		Causes:    []examine.Cause{{Object: ref("Kustomization", "app"), Message: "file <b> is missing", File: "app.yaml", Remedies: []string{"add it"}, Blocks: []controllers.ID{ref("Kustomization", "next")}}},
		Missing:   []stub.Need{{Object: ref("Secret", "vars"), NeededBy: []controllers.ID{ref("Kustomization", "app")}, Remedy: "--fake-secrets"}},
		Conflicts: []examine.Conflict{{Object: ref("ConfigMap", "both"), Differs: true, Fields: []string{"data.a"}}, {Object: ref("ConfigMap", "same")}},
		Orphans:   []examine.Orphan{{Object: ref("ConfigMap", "left"), Owner: ref("Kustomization", "app")}, {Object: ref("ConfigMap", "kept"), Owner: ref("Kustomization", "gone"), OwnerDeleted: true}},
		Timeline:  &testrun.Timeline{Base: "main", Entries: []timeline.Entry{{After: 1, Object: ref("Deployment", "web"), Action: timeline.Recreated, Gap: 0.5, Message: "it did not exist in between"}, {Object: ref("ConfigMap", "new"), Action: timeline.Created}}},
	}
}

// TestFormats checks what each format has, and that texts of others are no markup in it.
func TestFormats(t *testing.T) {
	t.Parallel()
	var html, xml bytes.Buffer
	if err := page(&html, failing()); err != nil {
		t.Fatal(err)
	}
	if err := suites(failing()).Write(&xml); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text       string
		has, lacks []string
	}{
		"human": {text(failing()), []string{
			"Flux 2.9.6: clusters/demo\n", "Ready, in this order\n   1.5s  GitRepository/apps/fleet (1.0s)\n", "Root causes\n  Kustomization/apps/app in app.yaml: file <b> is missing\n    add it\n    also blocked: Kustomization/apps/next\n",
			"Missing\n  Secret/apps/vars: required by Kustomization/apps/app\n    --fake-secrets\n", "they set different values for data.a", "with the same contents",
			"applied by Kustomization/apps/app, whose inventory does not contain it", "applied by Kustomization/apps/gone, which was deleted without pruning it",
			"Timeline after main\n    1.0s  recreated  Deployment/apps/web: it did not exist in between for 0.5s\n",
		}, []string{"\n::error", "Disruptive changes"}},
		"github": {annotations(failing()), []string{
			"::error file=app.yaml,title=not-ready::Kustomization/apps/app: file <b> is missing", "::warning title=missing::", "::error title=conflict::ConfigMap/apps/both", "::warning title=conflict::ConfigMap/apps/same",
			"::warning title=recreated::Deployment/apps/web",
		}, []string{"ConfigMap/apps/new"}},
		"junit": {xml.String(), []string{
			`tests="5" failures="3" skipped="1"`, `<testcase classname="clusters/demo" name="GitRepository/apps/fleet" time="1"></testcase>`, `message="Kustomization/apps/app: file &lt;b&gt; is missing"`,
		}, []string{"<b>"}},
		"html": {html.String(), []string{"1 of 3 resources ready", "file &lt;b&gt; is missing", "Timeline after main", `x="25.00" width="50.00"`}, []string{"<b>", "<script"}},
	} {
		for _, want := range c.has {
			if !strings.Contains(c.text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, c.text)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(c.text, not) {
				t.Errorf("%s has %q:\n%s", name, not, c.text)
			}
		}
	}
}

// TestOnce checks that the report for people has a long message once, and a short one with each object.
func TestOnce(t *testing.T) {
	t.Parallel()
	long := "install failed: " + strings.Repeat("x", 200)
	app, next := controllers.ID{Kind: "HelmRelease", Namespace: "apps", Name: "app"}, controllers.ID{Kind: "Kustomization", Namespace: "apps", Name: "next"}
	slow, gone := controllers.ID{Kind: "HelmRelease", Namespace: "apps", Name: "slow"}, controllers.ID{Kind: "HelmRelease", Namespace: "apps", Name: "gone"}
	failed := func(after float64) timeline.Entry {
		return timeline.Entry{After: after, Object: app, Action: timeline.Failed, Message: "Helm " + long}
	}
	r := &examine.Report{
		Objects: []settle.Status{{Object: app, Status: settle.NotReady, Message: long}, {Object: next, Status: settle.NotReady, Message: "waits"}, {Object: slow, Status: settle.NotReady, Message: "Running " + long}, {Object: gone, Status: settle.NotReady, Message: settle.Uninstalled + ": " + long}},
		Causes:  []examine.Cause{{Object: app, Message: long, Blocks: []controllers.ID{next, gone}}}, Unknown: []string{"not reconciled in time: HelmRelease/apps/slow: Running " + long},
		Timeline: &testrun.Timeline{Entries: []timeline.Entry{failed(1), failed(2)}},
	}
	var xml bytes.Buffer
	if err := suites(r).Write(&xml); err != nil {
		t.Fatal(err)
	}
	got := text(r)
	for part, times := range map[string]int{": " + long: 1, "Helm " + long: 1, "Running " + long: 1, "Kustomization/apps/next: waits\n": 1, "HelmRelease/apps/gone: uninstalled after a failure\n": 1, "HelmRelease/apps/app: the same failure as before\n": 1} {
		if n := strings.Count(got, part); n != times {
			t.Errorf("%d times %q, want %d:\n%s", n, part, times, got)
		}
	}
	if strings.Count(xml.String(), ": "+long) != 1 || !strings.Contains(xml.String(), `message="blocked by HelmRelease/apps/app"`) {
		t.Errorf("junit:\n%s", &xml)
	}
}
