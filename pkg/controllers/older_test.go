package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestRowsReadOlderObjects reads objects of older API versions: a row finds in
// the older fields what it reads from the current ones.
func TestRowsReadOlderObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object string
		want   shown
	}{
		"HelmRelease v2beta1": {
			`{kind: HelmRelease, spec: {chart: {spec: {sourceRef: {kind: HelmRepository, name: a}}}}, status: {lastAppliedRevision: 1.2.3}}`,
			shown{Cells: []string{"1.2.3", "False"}, Ready: "False", Result: "1.2.3", Sources: []string{"HelmRepository/apps/a"}},
		},
		"HelmRelease v2beta2": {
			`{kind: HelmRelease, spec: {suspend: true}, status: {lastAppliedRevision: 1.0.0, history: [{chartVersion: 1.2.3}]}}`,
			shown{Cells: []string{"1.2.3", "True"}, Ready: "False", Result: "1.2.3"},
		},
		"ImagePolicy v1beta1": {
			`{kind: ImagePolicy, status: {latestImage: "127.0.0.1:5000/org/app:v1"}}`,
			shown{Cells: []string{"127.0.0.1:5000/org/app", "v1"}, Ready: "False", Result: "127.0.0.1:5000/org/app:v1"},
		},
		"ImagePolicy v1beta1 that found nothing": {
			`{kind: ImagePolicy, status: {conditions: [{type: Ready, status: "False", reason: NoTags}]}}`,
			shown{Cells: []string{"", ""}, Ready: "False"},
		},
		"Receiver v1beta1": {
			`{kind: Receiver, status: {url: /hook/abc, conditions: [{type: Ready, status: "True", reason: Initialized}]}}`,
			shown{Cells: []string{"False"}, Ready: "True", Result: "/hook/abc"},
		},
		"Receiver v1beta2": {
			`{kind: Receiver, status: {url: /hook/old, webhookPath: /hook/new}}`,
			shown{Cells: []string{"False"}, Ready: "False", Result: "/hook/new"},
		},
		"Provider v1beta2": {
			`{kind: Provider, status: {conditions: [{type: Ready, status: "False", reason: ValidationFailed}]}}`,
			shown{Ready: "False"},
		},
		"Provider v1beta3": {`{kind: Provider}`, shown{Ready: "True"}},
		"Alert v1beta1": {
			`{kind: Alert, status: {conditions: [{type: Ready, status: "False", reason: ValidationFailed}]}}`,
			shown{Cells: []string{"False"}, Ready: "False"},
		},
		"Kustomization v1beta1": {
			`{kind: Kustomization, spec: {sourceRef: {kind: GitRepository, name: a}}, status: {lastAppliedRevision: main/6f9a1b2c3d4e5f60}}`,
			shown{Cells: []string{"main/6f9a1b2c3d4e5f60", "False"}, Ready: "False", Result: "main/6f9a1b2c3d4e5f60", Sources: []string{"GitRepository/apps/a"}},
		},
		"GitRepository v1beta1": {
			`{kind: GitRepository, status: {artifact: {revision: main/6f9a, checksum: abc}}}`,
			shown{Cells: []string{"main/6f9a", "False"}, Ready: "False", Result: "main/6f9a"},
		},
		"HelmRepository v1beta2 of type oci": {
			`{kind: HelmRepository, spec: {type: oci}, status: {conditions: [{type: Ready, status: "True", reason: Succeeded}]}}`,
			shown{Cells: []string{"", "False"}, Ready: "True"},
		},
		"ImageUpdateAutomation v1beta1": {
			`{kind: ImageUpdateAutomation, status: {lastAutomationRunTime: "2021-01-01T00:00:00Z", lastPushCommit: abc}}`,
			shown{Cells: []string{"2021-01-01T00:00:00Z", "False"}, Ready: "False", Result: "abc"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o controllers.Object
			if err := yaml.Unmarshal([]byte(c.object), &o); err != nil {
				t.Fatal(err)
			}
			o["metadata"] = controllers.Object{"name": "app", "namespace": "apps"}
			k, ok := controllers.FindKind(controllers.Path{"kind"}.String(o))
			if !ok {
				t.Fatalf("no row for %v", o["kind"])
			}
			if diff := cmp.Diff(c.want, show(k, o)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// shown is the part of an object that commands print.
type shown struct {
	Cells   []string
	Ready   string
	Result  string
	Sources []string
}

func show(k controllers.Kind, o controllers.Object) shown {
	s := shown{Ready: k.Ready(o).Status, Result: k.Result.String(o)}
	for _, c := range k.Columns {
		s.Cells = append(s.Cells, c.Cell(k, o))
	}
	for _, source := range k.SourceOf(o) {
		s.Sources = append(s.Sources, source.String())
	}
	return s
}
