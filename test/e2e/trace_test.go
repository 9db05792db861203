package e2e_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// traced contains the fields of a trace that the test reads.
type traced struct {
	Object    tracedLink
	AppliedBy tracedLink `json:"appliedBy"`
	Owners    []tracedLink
	Sources   []tracedLink
}

type tracedLink struct {
	Kind, Namespace, Name, Revision, Commit, Attempted, Ready string
	LastSucceeded, Since                                      string
}

// chains lists an object and its sources, nearest first, for every method of
// deployment.
var chains = map[string][]string{
	"ks-git":        {"Kustomization/ks-git", "GitRepository/app"},
	"ks-oci":        {"Kustomization/ks-oci", "OCIRepository/manifests"},
	"ks-bucket":     {"Kustomization/ks-bucket", "Bucket/app"},
	"ks-external":   {"Kustomization/ks-external", "ExternalArtifact/manifests", "ArtifactGenerator/parts", "GitRepository/app"},
	"hr-git":        {"HelmRelease/hr-git", "HelmChart/apps-hr-git", "GitRepository/app"},
	"hr-bucket":     {"HelmRelease/hr-bucket", "HelmChart/apps-hr-bucket", "Bucket/app"},
	"hr-repository": {"HelmRelease/hr-repository", "HelmChart/apps-hr-repository", "HelmRepository/app"},
	"hr-oci":        {"HelmRelease/hr-oci", "OCIRepository/chart"},
	"hr-chart":      {"HelmRelease/hr-chart", "HelmChart/own", "HelmRepository/app"},
	"hr-external":   {"HelmRelease/hr-external", "ExternalArtifact/chart", "ArtifactGenerator/parts", "GitRepository/app"},
}

// compareTraces compares the trace of each chain.
func compareTraces(f *fixture) {
	for name, want := range chains {
		f.t.Run(name, func(t *testing.T) { compareTrace(f.as(t), name, want) })
	}
	traceFailure(f)
	_, stderr, err := f.shell.try("flux", "trace", "configmap", "kube-root-ca.crt", "-n", "kube-system")
	if err == nil || !strings.Contains(stderr, `✗ configmap/kube-root-ca.crt in namespace kube-system is not managed by Flux`) {
		f.t.Errorf("tracing what Flux does not manage ends with %v:\n%s", err, stderr)
	}
}

func compareTrace(f *fixture, name string, want []string) {
	f.t.Helper()
	got := trace(f, name)
	links := append([]tracedLink{got.AppliedBy}, got.Sources...)
	var names []string
	for _, l := range links {
		names = append(names, l.Kind+"/"+l.Name)
		compareLink(f, l)
	}
	if diff := gocmp.Diff(want, names); diff != "" {
		f.t.Errorf("-chain +trace:\n%s", diff)
	}
	if head := strings.TrimSpace(f.git.run("rev-parse", "HEAD")); links[len(links)-1].Kind == "GitRepository" && links[len(links)-1].Commit != head {
		f.t.Errorf("the commit is %q, want %s", links[len(links)-1].Commit, head)
	}
	text := f.shell.run("flux", "trace", "configmap", name, "--namespace=apps")
	for _, l := range links {
		if l.Kind != "HelmChart" && !strings.Contains(text, l.Kind+":") {
			f.t.Errorf("the text does not contain the %s:\n%s", l.Kind, text)
		}
	}
}

// compareLink compares a link with the object on the cluster.
func compareLink(f *fixture, l tracedLink) {
	f.t.Helper()
	k, _ := controllers.FindKind(l.Kind)
	o, err := f.cluster.Client.Get(f.t.Context(), kube.Of(k), l.Namespace, l.Name)
	if err != nil {
		f.t.Fatal(err)
	}
	ready, _ := controllers.FindCondition(o, "Ready")
	path := map[string]string{
		"Kustomization": "status.lastAppliedRevision", "HelmRelease": "status.history[0].chartVersion",
		"ImageRepository": "status.lastScanResult.tagCount", "ImagePolicy": "status.latestRef.tag", "ImageUpdateAutomation": "status.lastPushCommit",
	}[l.Kind]
	revision := text(o, cmp.Or(path, "status.artifact.revision"))
	if l.Revision != revision || l.Ready != ready.Status || l.Since != ready.LastTransitionTime {
		f.t.Errorf("trace prints %+v for an object at %q that is ready since %s: %s", l, revision, ready.LastTransitionTime, ready.Status)
	}
}

// traceFailure breaks a Kustomization: trace prints both the last applied revision
// and the failed one.
func traceFailure(f *fixture) {
	f.t.Helper()
	before := trace(f, "ks-oci").AppliedBy
	f.shell.run("kubectl", "patch", "kustomization", "ks-oci", "--namespace=apps", "--type=merge", `--patch={"spec":{"path":"./nowhere"}}`)
	f.eventually("the Kustomization to fail", resource(f.t, "Kustomization"), kube.Selection{Namespace: "apps", Name: "ks-oci"}, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		return ready.Status == "False"
	})
	after := trace(f, "ks-oci").AppliedBy
	if after.Ready != "False" || after.Revision != before.Revision || after.LastSucceeded == "" || after.LastSucceeded > after.Since {
		f.t.Errorf("before the failure: %+v\nafter it: %+v", before, after)
	}
	out := f.shell.run("flux", "trace", "configmap", "ks-oci", "--namespace=apps")
	if !strings.Contains(out, "Last reconciliation failed at ") || !strings.Contains(out, "Last Success:") || !strings.Contains(out, "nowhere") {
		f.t.Errorf("the text does not distinguish the failure from the success:\n%s", out)
	}
	f.shell.run("kubectl", "patch", "kustomization", "ks-oci", "--namespace=apps", "--type=merge", `--patch={"spec":{"path":"./oci"}}`)
	f.shell.run("flux", "wait", "kustomization", "ks-oci", "--namespace=apps")
}

func trace(f *fixture, name string) (t traced) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(f.shell.run("flux", "trace", "configmap", name, "--namespace=apps", "--output=json")), &t); err != nil {
		f.t.Fatal(err)
	}
	return t
}
