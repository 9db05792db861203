package bootstrap_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/pkg/bootstrap"
)

// keyHost is a host whose Git server accepts its deploy keys.
type keyHost struct {
	*host
	keys map[string]bool // by public key
}

func (h *keyHost) repository() githost.Repository {
	r := h.host.repository()
	r.SyncURL = h.w.cluster.Env["FLUX_SANDBOX_GIT_SSH_URL"] + "/" + h.w.namespace + ".git"
	return r
}

func (h *keyHost) Survey(ctx context.Context, want githost.Want) (githost.Survey, error) {
	s, err := h.host.Survey(ctx, want)
	s.Repository = h.repository()
	return s, err
}

func (h *keyHost) Ensure(ctx context.Context) (githost.Repository, error) {
	_, err := h.host.Ensure(ctx)
	return h.repository(), err
}

func (h *keyHost) DeployKey(_ context.Context, key githost.DeployKey) error {
	if !h.keys[key.Public] {
		h.do(fmt.Sprintf("add key %d", len(h.keys)))
		h.keys[key.Public] = true
		h.w.sandbox(key.Public, "git", "keys", "add", "-", "--read-only")
	}
	for other := range h.keys {
		if other != key.Public && !key.KeepOthers {
			h.do("remove key")
			delete(h.keys, other)
			h.w.sandbox(other, "git", "keys", "remove", "-")
		}
	}
	return nil
}

// lateHost reports the address of its SSH server only once the repository exists.
type lateHost struct{ *keyHost }

func (h lateHost) Survey(ctx context.Context, want githost.Want) (githost.Survey, error) {
	s, err := h.keyHost.Survey(ctx, want)
	s.Repository.SyncURL = strings.Replace(s.Repository.SyncURL, "127.0.0.1", "localhost", 1)
	return s, err
}

// late: known_hosts has the SSH server that the host reports after Ensure.
func late(w *world) {
	w.requireAuth() // with the first deploy key the server requires authentication from all cases
	if err := os.RemoveAll(w.bare); err != nil {
		w.t.Fatal(err)
	}
	plan := w.on(lateHost{&keyHost{host: w.host(), keys: map[string]bool{}}})
	plan.TokenAuth = false
	w.mustRun(plan)
	if known := w.secret("flux-system")["known_hosts"]; !strings.HasPrefix(known, "[127.0.0.1]:") {
		w.t.Errorf("known_hosts is %q", known)
	}
}

// rotated: a new key is granted access before it is stored in the cluster, and
// the old key keeps its access until the cluster has fetched with the new one.
func rotated(w *world) {
	w.requireAuth()
	h := &keyHost{host: w.host(), keys: map[string]bool{}}
	plan := w.on(h)
	plan.TokenAuth = false
	w.mustRun(plan)
	w.mustRun(plan)
	h.wantDone(w.t, "add key 0")
	first := w.secret("flux-system")
	plan.RotateKey = true
	w.mustRun(plan)
	h.wantDone(w.t, "add key 0", "add key 1", "remove key")
	second := w.secret("flux-system")
	if first["identity"] == second["identity"] || !h.keys[strings.TrimSpace(second["identity.pub"])] {
		w.t.Errorf("the key was not replaced: %v", second["identity.pub"])
	}
	// Interrupted before the Secret was written, the cluster still has a key that works.
	c := changes{cutAt: 1, before: true}
	if text, err := w.run(plan, c.wrap); err == nil {
		w.t.Errorf("no error after the interruption:\n%s", text)
	}
	if diff := cmp.Diff(second, w.secret("flux-system")); diff != "" || len(h.keys) != 2 {
		w.t.Errorf("interrupted, the cluster has another key, and %d keys have access: %s", len(h.keys), diff)
	}
	plan.RotateKey = false
	w.mustRun(plan)
	if diff := cmp.Diff(second, w.secret("flux-system")); diff != "" || len(h.keys) != 1 {
		w.t.Errorf("after that, %d keys have access: %s", len(h.keys), diff)
	}
	w.changeRepository(h, plan, second)
}

// changeRepository: a cluster whose GitRepository has another URL gets a new
// key, because hosts accept a deploy key for one repository only.
func (w *world) changeRepository(h *keyHost, plan bootstrap.Plan, before map[string]string) {
	w.sandbox(before["identity.pub"], "git", "keys", "remove", "-")
	h.keys = map[string]bool{}
	w.patchSource(map[string]any{"spec": map[string]any{"url": "ssh://git@git.example.com/old"}})
	text := w.mustRun(plan)
	after := w.secret("flux-system")
	if after["identity"] == before["identity"] || !h.keys[strings.TrimSpace(after["identity.pub"])] {
		w.t.Errorf("the URL has changed, the key has not:\n%s", text)
	}
	if !strings.Contains(text, "revoke its access to ssh://git@git.example.com/old") {
		w.t.Errorf("the key to revoke is not reported:\n%s", text)
	}
}

func (w *world) patchSource(change map[string]any) {
	w.t.Helper()
	if _, err := w.cluster.Client.MergePatch(w.t.Context(), guess("source.toolkit.fluxcd.io/v1", "GitRepository"), w.namespace, w.namespace, change); err != nil {
		w.t.Fatal(err)
	}
}

// trusted: a host key is trusted if a file has it, if the user confirms it, or
// with a warning if there is no user to ask.
func trusted(w *world) {
	w.requireAuth()
	h := &keyHost{host: w.host(), keys: map[string]bool{}}
	plan := w.on(h)
	plan.TokenAuth = false
	file := filepath.Join(w.t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte("git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	plan.Key.HostKeysFile = file
	if _, err := w.run(plan, nil); err == nil || !strings.Contains(err.Error(), "which is not in "+file) {
		w.t.Errorf("a server that is not in the file: %v", err)
	}
	plan.Key.HostKeysFile = ""
	var asked []bootstrap.ServerKey
	refusal := fmt.Errorf("not that one")
	plan.Key.Trust = func(_ context.Context, key bootstrap.ServerKey) error {
		asked = append(asked, key)
		return refusal
	}
	if _, err := w.run(plan, nil); err == nil || err.Error() != "not that one" || len(asked) != 1 || !strings.HasPrefix(asked[0].Fingerprint, "SHA256:") {
		w.t.Errorf("a server that is not trusted: %v, %v", err, asked)
	}
	h.wantDone(w.t)
	plan.Key.Trust = nil
	if text := w.mustRun(plan); !strings.Contains(text, asked[0].Fingerprint+": unverified, trusted on first use") {
		w.t.Errorf("no warning about the host key:\n%s", text)
	}
	plan.Key.Trust = func(context.Context, bootstrap.ServerKey) error { return fmt.Errorf("the cluster knows it") }
	w.mustRun(plan)
	plan.Key.Trust = nil
	if err := os.WriteFile(file, []byte(w.secret("flux-system")["known_hosts"]), 0o600); err != nil {
		w.t.Fatal(err)
	}
	plan.Key.HostKeysFile = file
	if text := w.mustRun(plan); strings.Contains(text, "unverified") {
		w.t.Errorf("the key of the file is not used:\n%s", text)
	}
}
