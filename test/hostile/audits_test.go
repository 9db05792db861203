package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// audits lists repositories for audit.
func audits() []other {
	const sync = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\n" +
		"spec: {interval: 10m, prune: true, path: ./cluster, sourceRef: {kind: GitRepository, name: flux-system}}\n"
	row := func(name, exceptions, want, stdout string, exit int, then func(t *testing.T, folder string)) other {
		files := map[string]string{"cluster/sync.yaml": sync, "cluster/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n"}
		if exceptions != "" {
			files[".flux-audit.yaml"] = exceptions
		}
		r := row{name: "audit, " + name, files: files, make: func(t *testing.T, folder string) {
			t.Helper()
			commit(t, folder)
			if then != nil {
				then(t, folder)
			}
		}, dir: true, exit: exit, want: want, stdout: stdout}
		return other{r, []string{"audit", "--path", "cluster", "-o", "json"}}
	}
	return []other{
		row("exceptions of 1 TB", "", ".flux-audit.yaml: the file is larger than 128 MiB", "", 2, func(t *testing.T, folder string) {
			t.Helper()
			write(t, filepath.Join(folder, ".flux-audit.yaml"), "")
			if err := os.Truncate(filepath.Join(folder, ".flux-audit.yaml"), 1<<40); err != nil {
				t.Fatal(err)
			}
		}),
		row("exceptions of YAML aliases", bomb(9), ".flux-audit.yaml: the YAML aliases expand to more than 1000000 nodes", "", 2, nil),
		row("an exceptions file that links to an outside file", "", "", `"objects": 2`, 0, func(t *testing.T, folder string) {
			t.Helper()
			outside := filepath.Join(t.TempDir(), "exceptions.yaml")
			write(t, outside, "allow: [{rule: no-such-rule}]\n")
			if err := os.Symlink(outside, filepath.Join(folder, ".flux-audit.yaml")); err != nil {
				t.Fatal(err)
			}
		}),
		row("10,000 ConfigMaps, one of which has values", "", "", `"objects": 10002`, 0, func(t *testing.T, folder string) {
			t.Helper()
			var maps strings.Builder
			for i := range 10_000 {
				fmt.Fprintf(&maps, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: flux-system}\n", i)
			}
			write(t, filepath.Join(folder, "cluster", "maps.yaml"), maps.String())
			write(t, filepath.Join(folder, "cluster", "sync.yaml"), sync[:len(sync)-2]+", postBuild: {substituteFrom: [{kind: ConfigMap, name: c0}]}}\n")
		}),
	}
}
