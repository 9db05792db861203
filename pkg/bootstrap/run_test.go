package bootstrap_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

func guess(apiVersion, kind string) kube.Resource {
	return kube.ResourceFor(schema.FromAPIVersionAndKind(apiVersion, kind))
}

// history is the history of a bootstrapped repository that was empty.
var history = []string{"Flux <> Add Flux sync manifests", "Flux <> Add Flux v" + controllers.DefaultVersion + " component manifests"}

// TestRun runs all cases against one API server, each in its own namespace. The
// cases share the CRDs of Flux, so they do not run in parallel.
func TestRun(t *testing.T) {
	t.Parallel()
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	if err := cluster.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*world){
		"twice":     twice,
		"refused":   refused,
		"patched":   patched,
		"keyed":     keyed,
		"elsewhere": elsewhere,
		"cut-off":   cutOff,
		"overtaken": overtaken,
		"raced":     raced,
		"failing":   failing,
		"created":   created,
		"forbidden": forbidden,
		"protected": protected,
		"tokened":   tokened,
		"readonly":  readonly,
		"requested": requested,
		"previewed": previewed,
		"rotated":   rotated,
		"late":      late,
		"trusted":   trusted,
		"unready":   unready,
		"older":     older,
	} {
		t.Run(name, func(t *testing.T) { test(newWorld(t, cluster, name)) })
	}
}

// twice: the second run changes nothing, neither in the repository nor on the cluster.
func twice(w *world) {
	text := w.mustRun(w.plan())
	if diff := cmp.Diff(history, w.log()); diff != "" {
		w.t.Error(diff)
	}
	const files = "clusters/demo/twice/gotk-components.yaml\nclusters/demo/twice/gotk-sync.yaml\nclusters/demo/twice/kustomization.yaml"
	if diff := cmp.Diff(files, w.git(w.bare, "ls-tree", "-r", "--name-only", branch)); diff != "" {
		w.t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"username": "ada", "password": "s3cret"}, w.secret("flux-system")); diff != "" {
		w.t.Error(diff)
	}
	if strings.Contains(text, "s3cret") {
		w.t.Errorf("the password is in the output:\n%s", text)
	}
	var c changes
	if text, err := w.run(w.plan(), c.wrap); err != nil {
		w.t.Fatalf("%v\n%s", err, text)
	}
	if len(c.seen) > 0 {
		w.t.Errorf("the second run changed the cluster: %v", c.seen)
	}
	if diff := cmp.Diff(history, w.log()); diff != "" {
		w.t.Error(diff)
	}
}

// refused: a protected branch is reported before the cluster is changed.
func refused(w *world) {
	w.cluster.Sandbox(w.t, "git", "protect", w.namespace, branch)
	var c changes
	text, err := w.run(w.plan(), c.wrap)
	var known *hint.Error
	if !errors.As(err, &known) || known.Hint == "" || !strings.Contains(err.Error(), "rejected the push") {
		w.t.Errorf("pushing to a protected branch: %v\n%s", err, text)
	}
	if len(c.seen) > 0 {
		w.t.Errorf("the cluster was changed: %v", c.seen)
	}
	w.cluster.Sandbox(w.t, "git", "unprotect", w.namespace, branch)
	w.mustRun(w.plan())
}

// older: a version of Flux that does not have the stored API versions is reported before the repository
// and the cluster are changed.
func older(w *world) {
	w.mustRun(w.plan())
	plan := w.plan()
	options := manifests.Defaults()
	options.Namespace, options.Version = w.namespace, "2.9"
	var err error
	if plan.Components, err = manifests.Render(options); err != nil {
		w.t.Fatal(err)
	}
	var c changes
	text, err := w.run(plan, c.wrap)
	if err == nil || !strings.Contains(err.Error(), "cannot replace Flux v"+controllers.DefaultVersion) {
		w.t.Errorf("a downgrade: %v\n%s", err, text)
	}
	if len(c.seen) > 0 {
		w.t.Errorf("the cluster was changed: %v", c.seen)
	}
	if diff := cmp.Diff(history, w.log()); diff != "" {
		w.t.Error(diff)
	}
}

// patched: changes of the repository's owner are applied and kept.
func patched(w *world) {
	const kustomization = `# ours
resources:
  - ../../../more
  - gotk-sync.yaml # theirs
patches:
  - target: {kind: Deployment, name: source-controller}
    path: ../../../patches/replicas.yaml
  - target: {kind: Kustomization}
    patch: '[{"op": "add", "path": "/spec/timeout", "value": "7m0s"}]'
`
	w.commit(map[string]string{
		"clusters/demo/patched/kustomization.yaml": kustomization,
		"patches/replicas.yaml":                    "- op: add\n  path: /metadata/annotations\n  value: {ours: kept}\n",
		"more/kustomization.yaml":                  "resources: [cm.yaml]\n",
		"more/cm.yaml":                             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: patched}\n",
	})
	w.mustRun(w.plan())
	want := strings.Replace(kustomization, "# theirs\n", "# theirs\n  - gotk-components.yaml\n", 1)
	if diff := cmp.Diff(strings.TrimSpace(want), w.git(w.bare, "show", branch+":clusters/demo/patched/kustomization.yaml")); diff != "" {
		w.t.Error(diff)
	}
	if got := controllers.Annotation(w.get("apps/v1", "Deployment", "source-controller"), "ours"); got != "kept" {
		w.t.Errorf("the patch of the Deployment is not applied: %q", got)
	}
	if got := (controllers.Path{"spec.timeout"}).String(w.get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "patched")); got != "7m0s" {
		w.t.Errorf("the patch of the Kustomization is not applied: %q", got)
	}
	if w.get("v1", "ConfigMap", "more") == nil {
		w.t.Error("the ConfigMap of the kustomization is not applied")
	}
}

// keyed: a key is generated for the cluster, and a second run keeps it.
func keyed(w *world) {
	w.requireAuth()
	var shown []string
	plan := w.plan()
	plan.TokenAuth = false
	ssh := strings.TrimPrefix(w.cluster.Env["FLUX_SANDBOX_GIT_SSH_URL"], "ssh://git@")
	host := githost.Git{
		Access: githost.Access{URL: w.url, Username: "ada", Password: "s3cret"}, SSHUsername: "git", SSHHostname: ssh,
		Confirm: func(_ context.Context, key githost.DeployKey) error {
			shown = append(shown, key.Public)
			w.sandbox(key.Public, "git", "keys", "add", "-", "--read-only")
			return nil
		},
		CanConfirm: func() error { return errors.New("no terminal") },
	}
	plan.Host = host
	var c changes
	if _, err := w.run(plan, c.wrap); err == nil || err.Error() != "no terminal" || len(c.seen) > 0 || w.log() != nil {
		w.t.Errorf("a key that cannot be confirmed: %v, %v, %v", err, c.seen, w.log())
	}
	host.CanConfirm = nil
	plan.Host = host
	// A GitRepository that is ready with a password does not show that the key has access.
	w.mustRun(w.plan())
	declined := host
	declined.Confirm = func(_ context.Context, key githost.DeployKey) error {
		shown = append(shown, key.Public)
		return githost.ErrDeclined
	}
	plan.Host = declined
	if _, err := w.run(plan, nil); !errors.Is(err, githost.ErrDeclined) {
		w.t.Errorf("a key that is declined: %v", err)
	}
	plan.Host = host
	w.mustRun(plan)
	secret := w.secret("flux-system")
	if len(shown) != 2 || shown[0] != shown[1] || strings.TrimSpace(secret["identity.pub"]) != shown[0] || !strings.Contains(secret["identity"], "PRIVATE KEY") {
		w.t.Errorf("confirmed keys are %q, and the Secret has %q", shown, secret["identity.pub"])
	}
	name, port, _ := strings.Cut(ssh, ":")
	if !strings.HasPrefix(secret["known_hosts"], "["+name+"]:"+port+" ") {
		w.t.Errorf("known_hosts is %q", secret["known_hosts"])
	}
	w.mustRun(plan)
	if diff := cmp.Diff(secret, w.secret("flux-system")); diff != "" || len(shown) != 2 {
		w.t.Errorf("the second run generated another key, and %d were confirmed:\n%s", len(shown), diff)
	}
	// The GitRepository is still ready after its last fetch, but the key has lost its access.
	w.sandbox(shown[0], "git", "keys", "remove", "-")
	text := w.mustRun(plan)
	if diff := cmp.Diff(secret, w.secret("flux-system")); diff != "" || len(shown) != 3 || shown[2] != shown[0] {
		w.t.Errorf("a key without access: confirmed keys are %q\n%s", shown, diff)
	}
	if !strings.Contains(text, "the key in Secret keyed/flux-system has no access to the repository yet") {
		w.t.Errorf("a key without access is not reported:\n%s", text)
	}
	w.impersonated(plan, secret)
}

// requireAuth makes the Git server require credentials until the test ends.
func (w *world) requireAuth() {
	w.sandbox("s3cret", "git", "credentials", "set", "--username", "ada", "--password-stdin")
	w.t.Cleanup(func() {
		w.sandbox("", "git", "credentials", "clear")
		w.sandbox("", "git", "keys", "remove", "--all")
	})
}

// sandbox runs a command of the sandbox with stdin as its standard input.
func (w *world) sandbox(stdin string, args ...string) {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(testcluster.Bin(), "flux-sandbox"), append(args, "--dir", w.cluster.Dir)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Errorf("flux-sandbox %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// impersonated: a server whose host key differs from the known one is refused.
func (w *world) impersonated(plan bootstrap.Plan, secret map[string]string) {
	fields := strings.Fields(secret["known_hosts"])
	fake := fields[0] + " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
	change := map[string]any{"data": map[string]any{"known_hosts": base64.StdEncoding.EncodeToString([]byte(fake))}}
	if _, err := w.cluster.Client.MergePatch(w.t.Context(), guess("v1", "Secret"), w.namespace, "flux-system", change); err != nil {
		w.t.Fatal(err)
	}
	var c changes
	_, err := w.run(plan, c.wrap)
	if err == nil || !strings.Contains(err.Error(), "the connection may be intercepted") || len(c.seen) > 0 {
		w.t.Errorf("another host key: %v, %v", err, c.seen)
	}
	plan.Key.KnownHostsFile = filepath.Join(w.t.TempDir(), "known_hosts")
	if err := os.WriteFile(plan.Key.KnownHostsFile, []byte(fake), 0o600); err != nil {
		w.t.Fatal(err)
	}
	_, err = w.run(plan, c.wrap)
	if err == nil || !strings.Contains(err.Error(), "which is not the one in "+plan.Key.KnownHostsFile) || len(c.seen) > 0 {
		w.t.Errorf("another host key than in the user's file: %v, %v", err, c.seen)
	}
}

// elsewhere: a cluster that syncs from another path, or whose Flux is managed by
// another tool, is not changed.
func elsewhere(w *world) {
	w.mustRun(w.plan())
	w.ownedByOthers()
	plan := w.plan()
	plan.Path = "clusters/other"
	var c changes
	_, err := w.run(plan, c.wrap)
	if err == nil || err.Error() != `this cluster was bootstrapped from path "./clusters/demo", not from "./clusters/other"` {
		w.t.Errorf("another path: %v", err)
	}
	if len(c.seen) > 0 || len(w.log()) != 2 {
		w.t.Errorf("something was changed: %v, %v", c.seen, w.log())
	}
}

// ownedByOthers lets other tools own parts of Flux temporarily.
func (w *world) ownedByOthers() {
	w.t.Helper()
	for _, owned := range []struct {
		resource      kube.Resource
		name          string
		theirs, ours  map[string]any
		message, hint string
	}{
		{
			guess("apps/v1", "Deployment"), "source-controller",
			map[string]any{"metadata": map[string]any{"labels": map[string]any{kube.ManagedByLabel: "Helm"}}},
			map[string]any{"metadata": map[string]any{"labels": map[string]any{kube.ManagedByLabel: nil}}},
			"Deployment elsewhere/source-controller is managed by Helm", "remove it with Helm, or take ownership with --force",
		},
		{
			guess("kustomize.toolkit.fluxcd.io/v1", "Kustomization"), w.namespace,
			map[string]any{"spec": map[string]any{"sourceRef": map[string]any{"kind": "OCIRepository"}}},
			map[string]any{"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository"}}},
			"Kustomization elsewhere/elsewhere already exists and applies OCIRepository/elsewhere: bootstrap would change its source to GitRepository/elsewhere",
			"take ownership with --force, or delete it first",
		},
	} {
		change := func(to map[string]any) {
			if _, err := w.cluster.Client.MergePatch(w.t.Context(), owned.resource, w.namespace, owned.name, to); err != nil {
				w.t.Fatal(err)
			}
		}
		change(owned.theirs)
		w.wantFailure(owned.message, owned.hint)
		change(owned.ours)
	}
}

// cutOff: after an interruption at any request, another run has the result of
// an uninterrupted one.
func cutOff(w *world) {
	var whole changes
	if text, err := w.run(w.plan(), whole.wrap); err != nil {
		w.t.Fatalf("%v\n%s", err, text)
	}
	last := len(whole.seen)
	for i, at := range []int{1, last / 3, last / 2, last - 2, last - 1, last} {
		other := newWorld(w.t, w.cluster, fmt.Sprintf("cut-off-%d", i))
		c := changes{cutAt: at, before: i%2 == 0}
		if text, err := other.run(other.plan(), c.wrap); err == nil {
			w.t.Errorf("no error when interrupted at change %d of %d:\n%s", at, last, text)
		}
		other.mustRun(other.plan())
		if diff := cmp.Diff(history, other.log()); diff != "" {
			w.t.Errorf("interrupted at change %d: %s", at, diff)
		}
		if diff := cmp.Diff(w.secret("flux-system"), other.secret("flux-system")); diff != "" {
			w.t.Errorf("interrupted at change %d: %s", at, diff)
		}
		if i%3 != 0 {
			continue
		}
		var again changes
		if text, err := other.run(other.plan(), again.wrap); err != nil || len(again.seen) > 0 {
			w.t.Errorf("interrupted at change %d, a third run: %v, %v\n%s", at, err, again.seen, text)
		}
	}
}

// overtaken: commits of others are kept, and new settings are applied.
func overtaken(w *world) {
	w.commit(map[string]string{"clusters/demo/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"})
	w.mustRun(w.plan())
	w.commit(map[string]string{"README.md": "ours\n"})
	plan := w.plan()
	plan.Sync.Interval *= 2
	plan.Commit.Appendix = "[ci skip]"
	w.mustRun(plan)
	if diff := cmp.Diff([]string{history[0], "Owner <o@example.com> Ours", history[0], history[1], "Owner <o@example.com> Ours"}, w.log()); diff != "" {
		w.t.Error(diff)
	}
	if got := w.git(w.bare, "log", "-1", "--format=%B", branch); got != "Add Flux sync manifests\n\n[ci skip]" {
		w.t.Errorf("the message is %q", got)
	}
	if got := (controllers.Path{"spec.interval"}).String(w.get("source.toolkit.fluxcd.io/v1", "GitRepository", w.namespace)); got != "2m0s" {
		w.t.Errorf("the interval on the cluster is %s", got)
	}
}

// raced: another user pushes between the commit and its push, and edits the
// kustomization that bootstrap adds resources to.
func raced(w *world) {
	plan := w.plan()
	var calls int
	plan.Now = func() time.Time {
		if calls++; calls == 3 { // for the second commit
			w.commit(map[string]string{"clusters/demo/raced/kustomization.yaml": "resources:\n- ours.yaml\n", "clusters/demo/raced/ours.yaml": configMap})
		}
		return time.Unix(1793527200, 0)
	}
	text := w.mustRun(plan)
	if !strings.Contains(text, `branch "main" has new commits`) {
		w.t.Errorf("the race was not noticed:\n%s", text)
	}
	if diff := cmp.Diff(append(slices.Clone(history), "Owner <o@example.com> Ours"), w.log()); diff != "" {
		w.t.Error(diff)
	}
	const want = "resources:\n- ours.yaml\n- gotk-components.yaml\n- gotk-sync.yaml"
	if diff := cmp.Diff(want, w.git(w.bare, "show", branch+":clusters/demo/raced/kustomization.yaml")); diff != "" {
		w.t.Error(diff)
	}
	if w.get("v1", "ConfigMap", "ours") == nil {
		w.t.Error("the ConfigMap of the other push is not applied")
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ours, namespace: raced}\n"

// failing: a failure that a controller reports is returned without delay and
// with a hint. A failure from before the run is ignored.
func failing(w *world) {
	broken := [2]string{"BuildFailed", "kustomize build failed: no such file"}
	w.fail(map[string][2]string{"GitRepository": {"GitOperationFailed", "failed to checkout: authentication required"}, "Kustomization": broken})
	again := "fix the cause and run bootstrap again to resume"
	w.wantFailure("GitRepository failing/failing is not ready: GitOperationFailed: failed to checkout: authentication required", again)
	for message, hint := range map[string]string{
		"failed to checkout: couldn't find remote ref \"refs/heads/main\"": again,
		"x509: certificate signed by unknown authority":                    "set --ca-file to the CA certificate of the server, and run the command again",
	} {
		w.fail(map[string][2]string{"GitRepository": {"GitOperationFailed", message}})
		w.wantFailure("GitRepository failing/failing is not ready: GitOperationFailed: "+message, hint)
	}
	for _, failure := range [][2]string{
		broken, {"HealthCheckFailed", "timeout waiting for: [Deployment/failing/app status: 'InProgress']"},
	} {
		w.fail(map[string][2]string{"Kustomization": failure})
		w.wantFailure("Kustomization failing/failing is not ready: "+failure[0]+": "+failure[1], "fix it in the repository, commit and push, then run the command again")
	}
	var unready *bootstrap.UnreadyError
	if _, err := w.run(w.plan(), nil); !errors.As(err, &unready) || unready.Kind != "Kustomization" || unready.Name != "failing" || unready.Object == nil {
		w.t.Errorf("the error is %+v of %v", unready, err)
	}
	w.fail(nil)
	w.mustRun(w.plan())
}

func (w *world) wantFailure(message, remedy string) {
	w.t.Helper()
	_, err := w.run(w.plan(), nil)
	var known *hint.Error
	if !errors.As(err, &known) || err.Error() != message || known.Hint != remedy {
		w.t.Errorf("want %q (%q), got %v", message, remedy, err)
	}
}

// secret returns the decoded data of a Secret.
func (w *world) secret(name string) map[string]string {
	data, _ := w.get("v1", "Secret", name)["data"].(map[string]any)
	plain := map[string]string{}
	for key, value := range data {
		text, err := base64.StdEncoding.DecodeString(value.(string))
		if err != nil {
			w.t.Error(err)
		}
		plain[key] = string(text)
	}
	return plain
}
