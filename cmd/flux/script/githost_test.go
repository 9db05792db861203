package script_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testgithost"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// scriptHost is a test Git host that scripts configure and inspect.
type scriptHost interface {
	// State describes the state of the host.
	State() (string, error)
	// Set changes it.
	Set(words ...string) error
	Close() error
}

// scriptHosts start the Git hosts by the names of their commands.
var scriptHosts = map[string]func() (scriptHost, *testgithost.Server, error){
	"github": func() (scriptHost, *testgithost.Server, error) {
		g, err := testgithost.OpenGitHub()
		if err != nil {
			return nil, nil, err
		}
		g.Classic("s3cret", "ada", "repo", "read:org")
		return g, g.Server, nil
	},
	"gitlab":    scriptGitLab,
	"bitbucket": scriptBitbucket,
}

// hostKey is the key of a script's host.
type hostKey struct{}

type hostHolder struct {
	host   scriptHost
	server *testgithost.Server
}

func holder(ts *testscript.TestScript) *hostHolder {
	h := ts.Value(hostKey{}).(*hostHolder)
	if h.host == nil {
		ts.Fatalf("no host is started: githost NAME")
	}
	return h
}

// startGithost runs a Git host until the script ends, with its addresses in GIT_HOST
// and SSH_HOST, its certificate authority in ca.crt and its SSH host key in
// known_hosts: githost NAME
func startGithost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || scriptHosts[args[0]] == nil {
		ts.Fatalf("usage: githost NAME")
	}
	host, server, err := scriptHosts[args[0]]()
	ts.Check(err)
	*ts.Value(hostKey{}).(*hostHolder) = hostHolder{host, server}
	ts.Check(os.WriteFile(ts.MkAbs("ca.crt"), server.CA, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("known_hosts"), []byte(server.KnownHosts), 0o600))
	ts.Setenv("GIT_HOST", server.Hostname)
	ts.Setenv("SSH_HOST", server.SSHHostname)
	ts.Defer(func() { ts.Check(host.Close()) })
}

// setHost changes the host's state: sethost WORD…
func setHost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sethost WORD…")
	}
	ts.Check(holder(ts).host.Set(args...))
}

// hostState writes the host's state to a file: hoststate FILE
func hostState(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hoststate FILE")
	}
	state, err := holder(ts).host.State()
	ts.Check(err)
	state = strings.ReplaceAll(state, ts.Getenv("NS"), "NAMESPACE")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(state), 0o600))
}

// hostComments writes the comments on the pull requests of the host to a file, with what
// differs from run to run replaced: hostcomments FILE
func hostComments(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hostcomments FILE")
	}
	state, err := holder(ts).host.State()
	ts.Check(err)
	var b strings.Builder
	for line := range strings.Lines(state) {
		if text, of := strings.CutPrefix(line, "    "); of && (strings.HasPrefix(text, "  ") || strings.HasPrefix(text, "comment ")) || strings.HasPrefix(line, "  status ") || strings.TrimSpace(line) == "" {
			b.WriteString(line)
		}
	}
	text := strings.ReplaceAll(b.String(), holder(ts).server.Hostname, "HOST")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(commitHash.ReplaceAllString(text, "COMMIT")), 0o600))
}

// hostChanges writes the changes on the host since the last call to a file:
// hostchanges FILE
func hostChanges(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hostchanges FILE")
	}
	server := holder(ts).server
	var b strings.Builder
	for _, change := range server.Changes() {
		b.WriteString(change + "\n")
	}
	server.Forget()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// hostGit runs Git in a repository of the host: hostgit REPOSITORY ARG…
func hostGit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hostgit REPOSITORY ARG…")
	}
	ts.Check(ts.Exec("git", append([]string{
		"-C", holder(ts).server.Git.Path(args[0]), "-c", "user.name=ada", "-c", "user.email=ada@example.com",
	}, args[1:]...)...))
}

// deployKey authorizes a private key to read a repository of the host:
// deploykey REPOSITORY FILE
func deployKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: deploykey REPOSITORY FILE")
	}
	signer, err := ssh.ParsePrivateKey([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	ts.Check(holder(ts).host.Set("key", args[0], "ro", "script", public))
}

// clone clones a branch of the host's into a folder: clone REPOSITORY BRANCH FOLDER
func clone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: clone REPOSITORY BRANCH FOLDER")
	}
	ts.Check(holder(ts).server.Git.Clone(args[0], args[1], ts.MkAbs(args[2])))
}

// playFlux plays source-controller and kustomize-controller until the script
// ends. The source is really fetched, with what the cluster was given: playflux
func playFlux(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: playflux")
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &player{cluster.Client, ts.Getenv("NS")}
	var playing sync.WaitGroup
	var failed [2]error
	playing.Go(func() { failed[0] = p.play(ctx, "GitRepository", p.fetch) })
	playing.Go(func() { failed[1] = p.play(ctx, "Kustomization", p.apply) })
	ts.Defer(func() {
		cancel()
		playing.Wait()
		for _, err := range failed {
			if !errors.Is(err, context.Canceled) {
				ts.Check(err)
			}
		}
	})
}

// player simulates the controllers of a namespace.
type player struct {
	client    *kube.Client
	namespace string
}

func (p *player) play(ctx context.Context, kind string, work func(context.Context, controllers.Object) (map[string]any, error)) error {
	k, _ := controllers.FindKind(kind)
	res := kube.Of(k)
	return p.client.Follow(ctx, res, kube.Selection{Namespace: p.namespace}, "", func(e kube.Event) (bool, error) {
		token := controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt")
		if e.Deleted || controllers.Observed(e.Object) && (controllers.Path{"status.lastHandledReconcileAt"}).String(e.Object) == token {
			return false, nil
		}
		generation, _ := controllers.Path{"metadata.generation"}.Lookup(e.Object)
		status, err := work(ctx, e.Object)
		ready := map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "played"}
		if err != nil {
			status = map[string]any{}
			ready["status"], ready["reason"], ready["message"] = "False", "GitOperationFailed", err.Error()
		}
		ready["observedGeneration"], ready["lastTransitionTime"] = generation, "2026-11-01T10:00:00Z"
		status["observedGeneration"], status["conditions"] = generation, []any{ready}
		if token != "" {
			status["lastHandledReconcileAt"] = token
		}
		return false, p.client.PatchStatus(ctx, res, p.namespace, controllers.Name(e.Object), status)
	})
}

// fetch fetches the repository like source-controller.
func (p *player) fetch(ctx context.Context, o controllers.Object) (map[string]any, error) {
	secret, err := p.client.Get(ctx, kube.BuiltIn("v1", "Secret"), p.namespace, controllers.Path{"spec.secretRef.name"}.String(o))
	if err != nil {
		return nil, err
	}
	target, err := opened(controllers.Path{"spec.url"}.String(o), secret)
	if err != nil {
		return nil, err
	}
	branch := controllers.Path{"spec.ref.branch"}.String(o)
	ctx, cancel := context.WithTimeout(ctx, testlimit.Wait)
	defer cancel()
	repository, err := remote.Open(ctx, target, branch)
	if err != nil {
		return nil, err
	}
	revision := branch + "@sha1:" + repository.Head()
	return map[string]any{"artifact": map[string]any{
		"digest": "sha256:" + strings.Repeat("1", 64), "lastUpdateTime": "2026-11-01T10:00:00Z", "path": "a", "url": "http://example.com/a",
		"revision": revision,
	}}, repository.Close()
}

// opened returns the authentication of a Secret.
func opened(address string, secret controllers.Object) (remote.Repository, error) {
	data := map[string]string{}
	encoded, _ := secret["data"].(map[string]any)
	for key, value := range encoded {
		plain, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
		if err != nil {
			return remote.Repository{}, err
		}
		data[key] = string(plain)
	}
	target := remote.Repository{URL: address, CABundle: []byte(data["ca.crt"])}
	u, err := url.Parse(address)
	if err != nil {
		return target, err
	}
	if u.Scheme != "ssh" {
		target.Auth = remote.Basic(data["username"], data["password"])
		return target, nil
	}
	signer, err := sshkey.Signer([]byte(data["identity"]), data["password"])
	if err != nil {
		return target, err
	}
	_, _, known, _, _, err := ssh.ParseKnownHosts([]byte(data["known_hosts"]))
	target.Auth = remote.SSH(u.User.Username(), func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, known)
	return target, err
}

// apply reports the artifact of the source as applied, once it exists.
func (p *player) apply(ctx context.Context, o controllers.Object) (map[string]any, error) {
	source, _ := controllers.FindKind("GitRepository")
	revision := ""
	err := p.client.Follow(ctx, kube.Of(source), kube.Selection{Namespace: p.namespace, Name: controllers.Path{"spec.sourceRef.name"}.String(o)}, "", func(e kube.Event) (bool, error) {
		ready, found := controllers.FindCondition(e.Object, "Ready")
		revision = controllers.Path{"status.artifact.revision"}.String(e.Object)
		token := controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt")
		answered := token == (controllers.Path{"status.lastHandledReconcileAt"}).String(e.Object)
		return !e.Deleted && answered && found && ready.Status == "True" && controllers.Observed(e.Object) && revision != "", nil
	})
	return map[string]any{"lastAppliedRevision": revision, "lastAttemptedRevision": revision}, err
}

// scriptGitLab is a GitLab where ada owns the group acme, with the token s3cret.
func scriptGitLab() (scriptHost, *testgithost.Server, error) {
	g, err := testgithost.OpenGitLab(`
user ada
token s3cret ada api
group acme private ada=owner
group acme/platform private
group acme/operators private
group acme/auditors private
`)
	if err != nil {
		return nil, nil, err
	}
	return g, g.Server, nil
}

// scriptBitbucket is a Bitbucket where ada administers the project PLAT, with
// the token s3cret.
func scriptBitbucket() (scriptHost, *testgithost.Server, error) {
	b, err := testgithost.OpenBitbucket(`
user ada
token s3cret ada admin
group operators
group auditors
project PLAT Platform_Team ada=admin
`)
	if err != nil {
		return nil, nil, err
	}
	return b, b.Server, nil
}
