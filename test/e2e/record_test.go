package e2e_test

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordedCommands lists commands whose output must be the same in a replay.
var recordedCommands = []string{
	"get all -A", "get ks -A --show-source", "get sources all -A -o wide",
	"why", "why --all -o json", "why -n apps", "why ks nopath -n apps", "why ks nosource -n apps", "why ks paused -n apps",
	"why ks unhealthy -n apps", "why ks rejected -n apps", "why ks unserved -n apps", "why hr fails -n apps", "why gitrepository private -n apps", "why deployment stuck -n apps", "why ks none -n apps",
	"tree ks good -n apps", "tree ks unhealthy -n apps -o json", "tree hr shop -n apps", "tree source git app -n apps",
	"status ks good -n apps", "status ks nopath -n apps", "status ks unhealthy -n apps", "status ks rejected -n apps", "status hr fails -n apps", "status hr shop -n apps",
	"trace deployment web -n apps", "trace ks good -n apps", "trace pod none -n apps", "trace deployment kept -n apps",
	"events -A", "events --for ks/nopath -n apps", "events --for hr/fails -n apps", "logs -A", "logs --for ks/nopath -n apps --tail 20", "logs -A --level error",
	"deps -n apps", "stats -A", "check", "version", "export ks nopath -n apps",
}

// TestRecord breaks a cluster in several ways, and compares the output of commands on the cluster and on its recording.
func TestRecord(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	f.shell.run("flux", "install")
	f.shell.run("kubectl", "create", "namespace", "apps")
	reportFailure(f.in("apps"))
	f.git.commit("Break some things", map[string]string{
		"good/app.yaml": recordedManifests, "rejected/app.yaml": rejectedManifests, "unserved/app.yaml": unservedManifests, "unhealthy/app.yaml": stuckManifests,
		"chart/Chart.yaml": chart, "chart/values.yaml": "from: nowhere\n", "chart/templates/app.yaml": `{{- $_ := required "a message is required" .Values.message }}` + "\n" + releaseTemplate,
	})
	objects := strings.ReplaceAll(recordedObjects, "${GIT}", f.git.url)
	f.shell.run("kubectl", "apply", "--namespace=apps", "--filename="+tempFile(f.t, "objects.yaml", objects))
	f.shell.run("kubectl", "create", "secret", "generic", "kept", "--namespace=apps", "--from-literal=password=canary-kept")
	f.shell.run("flux", "wait", "ks", "good", "-n", "apps")
	f.shell.run("flux", "wait", "hr", "shop", "-n", "apps")
	for object, reason := range map[string]string{"ks/nopath": "ArtifactFailed", "ks/nosource": "ArtifactFailed", "ks/unhealthy": "HealthCheckFailed", "ks/rejected": "ReconciliationFailed", "ks/unserved": "ReconciliationFailed", "hr/fails": "InstallFailed"} {
		f.shell.run("kubectl", "wait", object, "--namespace=apps", waitFlag, `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=`+reason)
	}
	// The chart cannot be rendered, so the result does not depend on retries.
	if _, stderr, err := f.shell.try("flux", "reconcile", "hr", "fails", "-n", "apps"); err == nil || !strings.Contains(stderr, "a message is required") || strings.Contains(stderr, "timed out") {
		f.t.Errorf("reconciling a HelmRelease that fails: %v\n%s", err, stderr)
	}
	file := compareRecordings(f)
	t.Run("answers", func(t *testing.T) { checkReplay(f.as(t), file) })
	t.Run("unknown", func(t *testing.T) { rejectUnrecorded(f.as(t), file) })
	t.Run("secrets", func(t *testing.T) { checkSecretless(t, file) })
}

// attempts is the maximum number of recordings until every command was compared: controllers retry failures, at
// increasing intervals.
const attempts = 10

// compareRecordings compares the output of each command on the cluster, before and after a recording, with the output on
// the recording, and returns the last recording. Commands whose output changes in the meantime are repeated with a new
// recording.
func compareRecordings(f *fixture) (file string) {
	f.t.Helper()
	file = filepath.Join(f.t.TempDir(), "r.gz")
	rest := recordedCommands
	different := map[string]string{}
	for range attempts {
		before := answers(f, nil, rest)
		f.shell.run("flux", "record", "-o", file)
		after := answers(f, nil, rest)
		replayed := answers(f, []string{"flux", "replay", file, "--"}, rest)
		clear(different)
		for _, command := range rest {
			if replayed[command] != before[command] || replayed[command] != after[command] {
				different[command] = "with the cluster before: " + cmp.Diff(before[command], replayed[command]) + "\nwith the cluster after: " + cmp.Diff(after[command], replayed[command])
			}
		}
		if rest = slices.Sorted(maps.Keys(different)); len(rest) == 0 {
			return file
		}
	}
	for command, diff := range different {
		f.t.Errorf("flux %s (-cluster +recording), %s", command, diff)
	}
	return file
}

// answers returns the exit code and the output of each command. Another command runs the commands.
func answers(f *fixture, through, commands []string) map[string]string {
	f.t.Helper()
	found := map[string]string{}
	for _, command := range commands {
		words := slices.Concat(through, []string{"flux"}, strings.Fields(command))
		stdout, stderr, err := f.shell.try(words[0], words[1:]...)
		found[command] = fmt.Sprintf("exit code %d\n%s%s", exitCode(err), ageless(stdout), ageless(stderr))
	}
	return found
}

var (
	// duration matches an age, and padding the spaces between columns, whose widths depend on ages.
	duration = regexp.MustCompile(`\b(\d+(d|h|m|s))+\b`)
	padding  = regexp.MustCompile(` +(\t|\n)?`)
)

// ageless replaces ages in a text with a placeholder, and makes columns the same width for all ages.
func ageless(text string) string {
	return padding.ReplaceAllStringFunc(duration.ReplaceAllString(text, "AGE"), func(spaces string) string {
		if end := strings.TrimLeft(spaces, " "); end != "" {
			return end
		}
		return " "
	})
}

// checkReplay checks the contents of some outputs of a recording.
func checkReplay(f *fixture, file string) {
	wanted := map[string]string{
		"why": "GitRepository/apps/missing", "why ks unhealthy -n apps": "exit code 1", "tree ks good -n apps": "Pod/apps/web-", "status hr fails -n apps": "a message is required",
		"why ks rejected -n apps": "in rejected/app.yaml", "why ks unserved -n apps": "in unserved/app.yaml",
		"events -A": "ArtifactFailed", "logs -A --level error": "Kustomization/nopath.apps", "trace deployment web -n apps": "Kustomization", "get all -A": "kustomization/paused",
	}
	got := answers(f, []string{"flux", "replay", file, "--"}, slices.Collect(maps.Keys(wanted)))
	for command, want := range wanted {
		if !strings.Contains(got[command], want) {
			f.t.Errorf("flux %s does not have %q:\n%s", command, want, got[command])
		}
	}
}

// rejectUnrecorded checks that requests for data that was not recorded fail.
func rejectUnrecorded(f *fixture, file string) {
	for command, want := range map[string]string{
		"why ks good -n apps":                                "drift of the objects of Kustomization/apps/good: .*the portforward of pods is not in the recording",
		"why hr shop -n apps":                                "drift of the objects of HelmRelease/apps/shop: .*is not in the recording",
		"trace secret kept -n apps":                          `secrets "kept" is not in the recording`,
		"trace service other -n apps":                        "services are not in the recording",
		"reconcile ks good -n apps":                          "the cluster is a read-only recording",
		"delete ks good -n apps -s":                          "the cluster is a read-only recording",
		"stats --metrics":                                    "is not in the recording",
		"debug hr shop -n apps --show-values --mask-secrets": "",
	} {
		stdout, stderr, err := f.shell.try("flux", append([]string{"replay", file, "--", "flux"}, strings.Fields(command)...)...)
		if err == nil && want != "" || !regexp.MustCompile(want).MatchString(stdout+stderr) || strings.Contains(stdout+stderr, "canary") {
			f.t.Errorf("flux %s: %v\n%s%s", command, err, stdout, stderr)
		}
	}
}

// checkSecretless checks that the file contains no secrets of the cluster, not even in encoded form.
func checkSecretless(t *testing.T, file string) {
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close() //nolint:errcheck // it was read
	if info, err := packed.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	zip, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{"canary"}
	for i := range 3 { // the three alignments of base64
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", i) + "canary-"))
		forms = append(forms, encoded[(i*8+5)/6:(i+7)*8/6])
	}
	for _, form := range forms {
		if at := strings.Index(string(content), form); at >= 0 {
			t.Errorf("%s is in the recording: …%s…", form, content[max(0, at-200):min(len(content), at+50)])
		}
	}
	for _, there := range []string{"web-secret", "API_TOKEN", "dbPassword"} {
		if !strings.Contains(string(content), there) {
			t.Errorf("%s is not in the recording", there)
		}
	}
}

const recordedManifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: web-config, namespace: apps}
data: {setting: canary-setting}
---
apiVersion: v1
kind: Secret
metadata: {name: web-secret, namespace: apps}
stringData: {password: canary-secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1
        args: [--token=canary-argument, --password, canary-argument]
        env: [{name: API_TOKEN, value: canary-environment}, {name: MODE, value: canary-mode}]
`

// rejectedManifests contains an object that the API server rejects, and unservedManifests an object of a kind that it
// does not serve. Only the names may be recorded.
const rejectedManifests = `apiVersion: v1
kind: Service
metadata: {name: refused, namespace: apps, annotations: {owner: canary-annotation}}
spec: {ports: [{port: 0}]}
---
apiVersion: v1
kind: Secret
metadata: {name: beside, namespace: apps}
stringData: {password: canary-beside}
`

const unservedManifests = `apiVersion: example.com/v1
kind: Unserved
metadata: {name: thing, namespace: apps}
spec: {password: canary-unserved}
`

const stuckManifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck, namespace: apps}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {nodeSelector: {nowhere: "true"}, containers: [{name: app, image: "example.com/app:1"}]}
`

const recordedObjects = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${GIT}", ref: {branch: main}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: private}
spec: {interval: 1h, suspend: true, url: "https://me:canary-token@127.0.0.1:1/private.git?token=canary-query", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: good}
spec: {interval: 1h, prune: true, path: ./good, sourceRef: {kind: GitRepository, name: app}, postBuild: {substitute: {password: canary-variable}}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: nopath}
spec: {interval: 1h, prune: true, path: ./none, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: unhealthy}
spec: {interval: 1h, prune: true, wait: true, timeout: 5s, path: ./unhealthy, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: rejected}
spec: {interval: 1h, prune: true, path: ./rejected, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: unserved}
spec: {interval: 1h, prune: true, path: ./unserved, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: nosource}
spec: {interval: 1h, prune: true, path: ./good, sourceRef: {kind: GitRepository, name: missing}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: paused}
spec: {interval: 1h, suspend: true, prune: true, path: ./good, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop}
spec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}, values: {message: hello, dbPassword: canary-password, list: [canary-value]}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: fails}
spec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}, values: {other: canary-other}}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: chat}
spec: {type: generic, address: "http://127.0.0.1:1/canary-hook"}
---
apiVersion: v1
kind: Secret
metadata: {name: applied-by-hand}
stringData: {password: canary-by-hand}
`
