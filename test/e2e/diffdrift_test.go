package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiffDrift checks that only changes made on the cluster are reported as drift, but not changes of the
// source or the user.
func TestDiffDrift(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	f.shell = f.shell.with("FLUX_NAMESPACE=" + f.namespace)
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: drift, namespace: " + f.namespace + "}\ndata: {color: green}\n"
	f.git.commit("Begin", map[string]string{"drift/map.yaml": manifest})
	f.seed(strings.ReplaceAll(gitRepository, "${URL}", f.git.address) + "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: drift}\n" +
		"spec: {interval: 1h, prune: true, path: ./drift, sourceRef: {kind: GitRepository, name: app}}\n")
	f.shell.run("flux", "wait", "kustomization", "drift")
	drift := func() {
		t.Helper()
		f.shell.run("kubectl", "patch", "configmap", "drift", "--namespace="+f.namespace, "--type=merge", "--patch", `{"data":{"color":"red"}}`)
	}
	drift()
	check := func(line, total string, drifted bool, args ...string) {
		t.Helper()
		args = append([]string{"diff", "kustomization", "drift", "--progress-bar=false"}, args...)
		stdout, stderr, err := f.shell.try("flux", args...)
		if err == nil || !strings.HasPrefix(stdout, "► ConfigMap/"+f.namespace+"/drift "+line+"\n") || !strings.HasSuffix(stdout, "\n"+total+"\n") {
			t.Errorf("%s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
		}
		stdout, stderr, _ = f.shell.try("flux", append(args, "-o", "json")...)
		var report struct {
			Kustomizations []struct {
				Drift   bool
				Changes []struct {
					Object struct{ Kind, Name string }
					Drift  bool
				}
			}
		}
		err = json.Unmarshal([]byte(stdout), &report)
		if k := report.Kustomizations; err != nil || len(k) != 1 || len(k[0].Changes) != 1 || k[0].Changes[0].Object.Name != "drift" || (k[0].Drift || k[0].Changes[0].Drift) != drifted {
			t.Errorf("%s: not one change with drift %t: %v\n%s%s", strings.Join(args, " "), drifted, err, stdout, stderr)
		}
	}
	check("drifted", "1 drifted", true)
	// Files that are equal to the last applied ones also show the drift; other files show a change.
	check("drifted", "1 drifted", true, "--path="+filepath.Join(f.git.dir, "drift"))
	check("drifted", "1 drifted", true, "--branch=main")
	changed := t.TempDir()
	if err := os.WriteFile(filepath.Join(changed, "map.yaml"), []byte(strings.Replace(manifest, "green", "blue", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	check("changed", "1 changed", false, "--path="+changed)

	// A revision that is fetched and not yet applied is a change.
	f.shell.run("flux", "suspend", "kustomization", "drift")
	check("drifted", "1 drifted", true)
	f.git.commit("Change", map[string]string{"drift/map.yaml": strings.Replace(manifest, "green", "blue", 1)})
	f.shell.run("flux", "reconcile", "source", "git", "app")
	check("changed", "1 changed", false)

	// A spec that is changed while the Kustomization is suspended is not applied, although the
	// controller observes its generation.
	f.git.commit("Restore", map[string]string{"drift/map.yaml": manifest})
	f.shell.run("flux", "reconcile", "source", "git", "app")
	f.shell.run("flux", "resume", "kustomization", "drift")
	// The first reconciliation may read the previous revision of the source from the cache of its controller.
	f.shell.run("kubectl", "wait", "kustomization/drift", "--namespace="+f.namespace, "--for=jsonpath={.status.lastAppliedRevision}="+f.git.revision(), waitFlag)
	drift()
	f.shell.run("flux", "suspend", "kustomization", "drift")
	check("drifted", "1 drifted", true)
	f.shell.run("kubectl", "patch", "kustomization", "drift", "--namespace="+f.namespace, "--type=merge", "--patch", `{"spec":{"patches":[{"target":{"kind":"ConfigMap"},"patch":"[{\"op\":\"replace\",\"path\":\"/data/color\",\"value\":\"blue\"}]"}]}}`)
	// Created, suspended, resumed, suspended and patched.
	f.shell.run("kubectl", "wait", "kustomization/drift", "--namespace="+f.namespace, "--for=jsonpath={.status.observedGeneration}=5", waitFlag)
	check("changed", "1 changed", false)
}
