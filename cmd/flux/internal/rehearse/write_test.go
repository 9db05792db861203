package rehearse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/rehearse"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

func alert(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Alert",
		"metadata": map[string]any{"name": "on-call", "namespace": "apps"}, "spec": spec,
	}}
}

// sample is a report with a part of each kind. Texts of the repository contain markup and control
// characters.
func sample() *rehearse.Report {
	ref := controllers.VersionedID{ID: controllers.ID{Kind: "Alert", Namespace: "apps", Name: "on-call"}}
	before, after := alert(map[string]any{"summary": "<b>demo</b>"}), alert(map[string]any{"suspend": true})
	return &rehearse.Report{
		From: "2.9.6", To: "2.10.0", Path: "clusters/demo", Result: rehearse.Different, Objects: 12,
		Findings: []rehearse.Finding{
			{Level: rehearse.Breaks, Rule: "field-removed", Object: ref, Message: "spec.summary <script>\x1b[31m" + strings.Repeat("x", 300), File: "a.yaml", Remedies: []string{"remove spec.summary", "migrate the files: flux migrate -f ."}, Also: []controllers.ID{{Kind: "Kustomization", Name: "blocked"}}},
			{Level: rehearse.Migrate, Rule: "deprecated", Object: ref, Message: "v1beta3 Alert is deprecated"},
			{Level: rehearse.Notice, Rule: "default", Object: ref, Message: "a default differs"},
		},
		Controllers: []rehearse.Controller{
			{Name: "source-controller", To: "v1.10.1", Ran: "v1.10.1", Exact: true},
			{Name: "helm-controller", To: "v1.7.1", Ran: "v1.6.4", Unknown: "how it reconciles HelmRelease (1), especially HelmRelease/apps/web (post-renderers)"},
		},
		NotRehearsed: []settle.Omission{{Object: controllers.ID{Kind: "HelmRepository", Name: "charts"}, Reason: "not ready with either version"}},
		Changes: []*diff.Result{{Owner: controllers.VersionedID{ID: controllers.ID{Kind: "Kustomization", Name: "root"}}, Builds: true, Changes: []diff.Change{
			{Object: ref, Action: diff.Changed, Before: before, After: after, Fields: diff.Fields(before.Object, after.Object)},
		}}},
		Unsettled: []string{"Kustomization/apps/slow with Flux 2.10.0: running"},
	}
}

// TestWrite checks that each format has every part of the report, and escapes the text of others.
func TestWrite(t *testing.T) {
	t.Parallel()
	for _, format := range append([]string{""}, formats...) {
		var out bytes.Buffer
		a := app.New(strings.NewReader(""), &out, io.Discard, func(string) string { return "" }, time.Now)
		if err := write(a, format, sample()); err != nil {
			t.Errorf("-o %s: %v", format, err)
		}
		a.Flush()
		wanted := []string{
			"spec.summary", "a.yaml", "remove spec.summary", "flux migrate -f .", "blocked", "v1beta3 Alert is deprecated", "a default differs", "v1.7.1", "post-renderers",
			"HelmRepository", "not ready with either version", "slow",
		}
		if format != "json" && format != "yaml" {
			wanted = append(wanted, "Breaks", "Migrate", "Could not check", "1 of 2 controllers did not run in the version of Flux 2.10.0", "suspend")
		}
		for _, want := range wanted {
			if !strings.Contains(out.String(), want) {
				t.Errorf("-o %s has no %q:\n%s", format, want, &out)
			}
		}
		for _, bad := range []string{"\x1b"} {
			if strings.Contains(out.String(), bad) {
				t.Errorf("-o %s has %q:\n%s", format, bad, &out)
			}
		}
		if (format == "html" || format == "github") && strings.Contains(out.String(), "spec.summary <script>") {
			t.Errorf("-o %s has the markup of a message", format)
		}
	}
}

// TestVerdict checks the exit codes.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]int{rehearse.Same: 0, rehearse.Different: 1, rehearse.Undetermined: 2} {
		a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
		got := 0
		var code *clierr.ExitCodeError
		if errors.As(exitError(a, &rehearse.Report{Result: result}), &code) {
			got = code.Code
		}
		if got != want {
			t.Errorf("%s exits %d, want %d", result, got, want)
		}
	}
}

// TestConclusion checks that a report without differences states what it does not cover.
func TestConclusion(t *testing.T) {
	t.Parallel()
	exact := &rehearse.Report{From: "2.9.6", To: "2.10.0", Result: rehearse.Same, Objects: 3, Controllers: []rehearse.Controller{{Exact: true}}}
	if got, want := conclusion(exact), "No differences between Flux 2.9.6 and 2.10.0 in 3 objects."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	exact.Controllers = append(exact.Controllers, rehearse.Controller{})
	want := "No differences between Flux 2.9.6 and 2.10.0 in 3 objects. 1 of 2 controllers did not run in the version of Flux 2.10.0: changes specific to that version are unknown."
	if got := conclusion(exact); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
