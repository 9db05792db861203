package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestNightlyUpgradeGuide runs the commands of docs/upgrade.md in their order on a cluster with Flux 2.9 and
// an Alert in the API version that Flux 2.10 deprecates.
func TestNightlyUpgradeGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join(testcluster.Root(), "docs", "upgrade.md"))
	if err != nil {
		t.Fatal(err)
	}
	f := newWhole(t)
	f.shell.limit = sandboxWaits * waitTime // of the rehearsal
	f.shell.run("flux", "bootstrap", "git", "--url="+f.git.url, "--allow-insecure-http", "--branch=main", "--path=clusters/production",
		"--username=dev", "--password=not-checked", "--token-auth", "--silent", "--version=2.9")
	f.git.commit("Send notifications", map[string]string{
		"clusters/production/notifications.yaml": strings.ReplaceAll(notifications, "  summary: the demo cluster\n", ""),
	})
	f.shell.run("flux", "reconcile", "kustomization", "flux-system", "--with-source")
	// The rehearsal finds the deprecated API version.
	codes := map[string]int{"flux rehearse --path clusters/production --to 2.10": 1}
	outputs := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			stdout, stderr, err := f.shell.in(f.git.dir).try("bash", "-c", line)
			if exitCode(err) != codes[line] {
				t.Fatalf("%s: %v, want exit code %d\n%s%s", line, err, codes[line], stdout, stderr)
			}
			outputs[line] += stdout + stderr
		}
	}
	for line, want := range map[string]string{
		"flux rehearse --path clusters/production --to 2.10": "v1beta3 Alert is deprecated, upgrade to v1",
		"flux version": "distribution: flux-v2.10.0",
	} {
		if !strings.Contains(outputs[line], want) {
			t.Errorf("%s does not print %q:\n%s", line, want, outputs[line])
		}
	}
	if text := f.shell.run("kubectl", "get", "crd", "alerts.notification.toolkit.fluxcd.io", "-o", "jsonpath={.status.storedVersions}"); text != `["v1"]` {
		t.Errorf("Alerts are stored in %s", text)
	}
	if text := f.shell.run("kubectl", "get", "alerts.v1.notification.toolkit.fluxcd.io", "-n", "flux-system", "on-call", "-o", "name"); !strings.Contains(text, "on-call") {
		t.Errorf("the Alert is %q", text)
	}
	migrated, err := os.ReadFile(filepath.Join(f.git.dir, "clusters", "production", "notifications.yaml"))
	if err != nil || strings.Contains(string(migrated), "v1beta3") || !strings.Contains(string(migrated), "notification.toolkit.fluxcd.io/v1\n") {
		t.Errorf("the migrated file is (%v):\n%s", err, migrated)
	}
}
