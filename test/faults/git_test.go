package faults_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fluxkit/flux/test/support/testgit"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testproxy"
	"github.com/fluxkit/flux/test/support/tier"
)

// gitTimeout is the --timeout of commands whose Git server stalls. They run until the timeout; other
// commands end earlier.
const gitTimeout = 5 * time.Second

// The messages about faults of Git servers, and their fixes.
const (
	gitStalled = "timed out after 5s"
	gitLost    = "the server closed the connection: "
	gitUnsure  = "timed out after 5s: the push may have succeeded"
	gitUnsent  = "connection lost before the server confirmed the push ("
	gitRetry   = "run the command again; if it fails again, check the logs of the Git server and of the proxies in front of it"
	gitResume  = "run the command again; it resumes"
	gitListens = "check that an SSH server listens at this address, or increase --timeout"
	gitReach   = "check that the host is reachable, or increase --timeout"
)

// gitFault is a fault at one point of a command, with the message and the fix.
type gitFault struct{ at, how, message, remedy string }

// httpFaults lists the faults of a Git server over HTTPS.
var httpFaults = map[string]func(w http.ResponseWriter, r *http.Request){
	"stalls": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the closed connection is detected only after the body
		<-r.Context().Done()
	},
	"503": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>Service Unavailable</html>", http.StatusServiceUnavailable)
	},
	"drops": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		text := "001e# service=git-upload-pack\n0000"
		switch {
		case strings.HasSuffix(r.URL.Path, "/git-upload-pack") && r.Header.Get("Git-Protocol") == "version=2":
			// The response to ls-refs ends within a reference: git can only report the lost connection.
			text = "003d1f2e3d4c5b6a"
		case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			text = "0008NAK\n0100\x01PACK"
		case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
			text = "0030\x01000eunpack"
		}
		_, _ = io.WriteString(w, text) // the client may have disconnected
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
}

// sshFaults lists the faults of a Git server over SSH.
var sshFaults = map[string]testgit.Fault{"stalls": testgit.Stall, "drops": testgit.Drop, "fails": testgit.Fail}

const gitFailed = "the Git command failed on the server: fatal: out of disk space"

// httpReads lists the faults while a repository is read over HTTPS, sshReads over SSH.
var (
	httpReads = append(httpBegins("git-upload-pack"), []gitFault{
		{"/git-upload-pack", "stalls", gitStalled, gitReach},
		{"/git-upload-pack", "503", "the server failed: 503 Service Unavailable", gitRetry},
		{"/git-upload-pack", "drops", gitLost, gitRetry},
	}...)
	sshReads = slices.Concat([]gitFault{
		{" connect", "stalls", gitStalled, gitListens},
		{" connect", "drops", "no host key from ", gitListens},
		{" authenticate", "stalls", gitStalled, gitReach},
	}, sshBegins("git-upload-pack"), []gitFault{
		{"git-upload-pack transfer", "stalls", gitStalled, gitReach},
		{"git-upload-pack transfer", "drops", gitLost, gitRetry},
		{"git-upload-pack transfer", "fails", gitFailed, gitRetry},
	})
	httpWrites = append(httpBegins("git-receive-pack"), []gitFault{
		{"/git-receive-pack", "stalls", gitUnsure, gitResume},
		{"/git-receive-pack", "503", `the server failed before it confirmed the push (503 Service Unavailable): branch "main" does not contain the commits`, gitResume},
		{"/git-receive-pack", "drops", gitUnsent, gitResume},
	}...)
	sshWrites = append(sshBegins("git-receive-pack"), []gitFault{
		{"git-receive-pack transfer", "stalls", gitUnsure, gitResume},
		{"git-receive-pack transfer", "drops", gitUnsent, gitResume},
		{"git-receive-pack transfer", "fails", `branch "main" does not contain the commits`, gitResume},
	}...)
)

// gitCauses lists the causes in the output of git, ssh and curl.
var gitCauses = map[string]string{
	"/info/refs?service=git-upload-pack 503":   "unable to access ",
	"/info/refs?service=git-upload-pack drops": "unable to access ",
	"/git-upload-pack 503":                     "RPC failed; HTTP 503",
	"/git-upload-pack drops":                   "RPC failed; ",
	" connect drops":                           "Connection ",
	" host key refused":                        "Host key verification failed.",
	"git-upload-pack command drops":            "Connection to 127.0.0.1 closed by remote host.",
	"git-upload-pack references drops":         "Connection to 127.0.0.1 closed by remote host.",
	"git-upload-pack references fails":         "out of disk space",
	"git-upload-pack transfer drops":           "Connection to 127.0.0.1 closed by remote host.",
	"git-upload-pack transfer fails":           "out of disk space",
}

// fetches returns the faults with the message and the fix of a fetch with git.
func fetches(faults []gitFault) []gitFault {
	faults = slices.Clone(faults)
	for i, f := range faults {
		faults[i].message, faults[i].remedy = "fetching base: git fetch: "+gitCauses[f.at+" "+f.how], "check the revision, and the connection to origin with git fetch"
		if f.how == "stalls" {
			faults[i].message, faults[i].remedy = "fetching base: "+gitStalled, "check the connection to origin with git fetch, or increase --timeout"
		}
	}
	return faults
}

// httpBegins lists the faults until the references of the server are read over HTTPS.
func httpBegins(service string) []gitFault {
	at := "/info/refs?service=" + service
	return []gitFault{
		{at, "stalls", gitStalled, gitReach},
		{at, "503", "the server failed: 503 Service Unavailable", gitRetry},
		{at, "drops", gitLost, gitRetry},
	}
}

// sshBegins lists the faults until the references of the server are read over SSH.
func sshBegins(service string) []gitFault {
	return []gitFault{
		{service + " command", "stalls", gitStalled, gitReach},
		{service + " command", "drops", gitLost, gitRetry},
		{service + " references", "stalls", gitStalled, gitReach},
		{service + " references", "drops", gitLost, gitRetry},
		{service + " references", "fails", gitFailed, gitRetry},
	}
}

// faultyGit is a Git server with a fault, and the credentials for it.
type faultyGit struct{ url, ca, key, knownHosts string }

// overHTTPS serves the repositories of the sandbox over HTTPS.
func (w *world) overHTTPS(t *testing.T, at, how string) faultyGit {
	t.Helper()
	reverse, err := testproxy.Reverse(w.cluster.Env["FLUX_SANDBOX_GIT_URL"])
	check(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.RequestURI(), at) {
			httpFaults[how](rw, r)
			return
		}
		reverse.ServeHTTP(rw, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	check(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return faultyGit{url: server.URL, ca: ca}
}

// overSSH serves the repositories of the sandbox over SSH.
func (w *world) overSSH(t *testing.T, at, how string) faultyGit {
	t.Helper()
	server := testgit.StartSSH(t, filepath.Join(w.cluster.Dir, "git"), func(p testgit.Point) testgit.Fault {
		if p.Service+" "+p.Stage == at {
			return sshFaults[how]
		}
		return testgit.None
	})
	_, host, _ := strings.Cut(server.URL, "@")
	key := server.HostKey
	if how == "refused" {
		other, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed([]byte("a key that the server does not..")))
		check(t, err)
		key = other.PublicKey()
	}
	return faultyGit{url: server.URL, key: privateKey(t), knownHosts: knownhosts.Line([]string{host}, key)}
}

// git injects each fault into each point of each command that uses Git. The command ends within
// --timeout with a message and a fix, and leaves nothing in the repository or the temporary directory.
func (w *world) git(t *testing.T) {
	reads := map[string]invocation{"bootstrap": w.bootstrapFrom, "diff": w.diffRevision}
	for verb, args := range reads {
		for _, f := range httpReads {
			w.gitFault(t, verb+"-https", f, w.overHTTPS, args)
		}
		for _, f := range sshReads {
			w.gitFault(t, verb+"-ssh", f, w.overSSH, args)
		}
	}
	for _, f := range fetches(httpReads) {
		w.gitFault(t, "fetch-https", f, w.overHTTPS, w.fetchBase)
	}
	for _, f := range fetches(append(sshReads, gitFault{at: " host key", how: "refused"})) {
		w.gitFault(t, "fetch-ssh", f, w.overSSH, w.fetchBase)
	}
	for _, f := range httpWrites {
		w.gitFault(t, "bootstrap-https", f, w.overHTTPS, w.bootstrapFrom)
	}
	for _, f := range sshWrites {
		w.gitFault(t, "bootstrap-ssh", f, w.overSSH, w.bootstrapFrom)
	}
	for _, f := range sshReads[:2] {
		f.remedy = "check the host and port in --url, and that its SSH server is running"
		w.gitFault(t, "secret-ssh", f, w.overSSH, func(t *testing.T, name string, g faultyGit) (string, []string) {
			w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")
			return "", []string{"create", "secret", "git", "app", "--url=" + g.url + "/" + name + ".git", "--namespace=" + name}
		})
	}
}

// invocation returns the directory and the command line of a command that uses a Git server.
type invocation func(t *testing.T, name string, g faultyGit) (folder string, args []string)

func (w *world) bootstrapFrom(_ *testing.T, name string, g faultyGit) (string, []string) {
	args := []string{"bootstrap", "git", "--url=" + g.url + "/" + name + ".git", "--silent", "--path=clusters/demo", "--namespace=" + name, "--network-policy=false"}
	if g.key != "" {
		return "", append(args, "--private-key-file="+g.key)
	}
	return "", append(args, "--username=dev", "--password=any", "--token-auth", "--ca-file="+g.ca)
}

// diffRevision compares with a revision that is fetched from the Git server.
func (w *world) diffRevision(t *testing.T, name string, g faultyGit) (string, []string) {
	w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")
	w.kustomizations(t, name, "app")
	data := map[string]string{"username": "dev", "password": "any"}
	if g.key != "" {
		key, err := os.ReadFile(g.key)
		check(t, err)
		data = map[string]string{"identity": string(key), "known_hosts": g.knownHosts}
	} else {
		ca, err := os.ReadFile(g.ca)
		check(t, err)
		data["ca.crt"] = string(ca)
	}
	var secret strings.Builder
	for key, value := range data {
		fmt.Fprintf(&secret, "  %s: %q\n", key, value)
	}
	w.seed(t, name, "apiVersion: v1\nkind: Secret\nmetadata: {name: app}\nstringData:\n"+secret.String()+
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: app}\nspec: {interval: 1m, url: \""+g.url+"/"+name+".git\", secretRef: {name: app}}\n")
	return "", []string{"diff", "ks", "app", "--revision=main", "--namespace=" + name}
}

// fetchBase compares a shallow clone with a branch that git fetches from the Git server.
func (w *world) fetchBase(t *testing.T, name string, g faultyGit) (string, []string) {
	clone, bare := filepath.Join(t.TempDir(), "clone"), filepath.Join(w.cluster.Dir, "git", name+".git")
	hosts := filepath.Join(t.TempDir(), "known_hosts")
	check(t, os.WriteFile(hosts, []byte(g.knownHosts+"\n"), 0o600))
	for _, args := range [][]string{
		{"--git-dir=" + bare, "branch", "base", "main"}, {"clone", "-q", "--depth=1", "--branch=main", "file://" + bare, clone},
		{"-C", clone, "remote", "set-url", "origin", g.url + "/" + name + ".git"}, {"-C", clone, "config", "http.sslVerify", "false"},
		{"-C", clone, "config", "core.sshCommand", "ssh -F /dev/null -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes -i '" + g.key + "' -o UserKnownHostsFile='" + hosts + "'"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return clone, []string{"diff", "--base=base", "--fetch", "--path=."}
}

// stateOf returns the references and files of a clone, including locks and incomplete packs.
func stateOf(t *testing.T, clone string) string {
	t.Helper()
	if clone == "" {
		return ""
	}
	var found []string
	check(t, filepath.WalkDir(clone, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "FETCH_HEAD" { // git empties it first
			found = append(found, path)
		}
		return err
	}))
	out, err := exec.Command("git", "-C", clone, "for-each-ref").CombinedOutput()
	check(t, err)
	return strings.Join(found, "\n") + "\n" + string(out)
}

// gitFault runs a command with one fault.
func (w *world) gitFault(t *testing.T, verb string, f gitFault, serve func(*testing.T, string, string) faultyGit, args invocation) {
	name := verb + "-" + strings.TrimPrefix(strings.NewReplacer("/", "", "?", "-", "=", "-", " ", "-").Replace(f.at), "-") + "-" + f.how
	if name = strings.ReplaceAll(name, "inforefs-service-", "refs-"); !tier.Nightly() && f.how == "stalls" && !strings.Contains(f.at, "upload-pack") {
		return
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		before := w.repositoryWithCommit(t, name)
		folder, words := args(t, name, serve(t, f.at, f.how))
		timeout := 2 * testlimit.Wait // a fault that does not stall ends the command
		if f.how == "stalls" {
			timeout = gitTimeout
		}
		words = append(words, "--timeout="+timeout.String())
		start := time.Now()
		state := stateOf(t, folder)
		p := w.startIn(t, folder, w.cluster.Kubeconfig, words...)
		select {
		case <-p.ended:
		case <-time.After(testlimit.Wait):
			p.fatalf("does not exit")
		}
		t.Logf("after %s: %s", time.Since(start).Round(10*time.Millisecond), p.stderr)
		code := map[bool]int{true: 2, false: 1}[words[0] == "diff"]
		if got := p.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(p.stderr.String(), f.message) || !strings.Contains(p.stderr.String(), f.remedy) {
			p.fatalf("exit code %d, want %d with %q and %q", got, code, f.message, f.remedy)
		}
		if p.stdout.String() != "" && words[0] != "bootstrap" {
			p.fatalf("it prints an answer")
		}
		if after := w.headOf(t, name); after != before {
			p.fatalf("the repository has another commit: %s", after)
		}
		if after := stateOf(t, folder); after != state {
			p.fatalf("the clone is changed:\n%s\nwas\n%s", after, state)
		}
		p.endsItsChildren()
		if left, err := os.ReadDir(p.temporary); err != nil || len(left) > 0 {
			p.fatalf("left in the temporary directory: %v, %v", left, err)
		}
	})
}

// repositoryWithCommit creates a repository with a file, and returns its commit.
func (w *world) repositoryWithCommit(t *testing.T, name string) string {
	t.Helper()
	w.cluster.Sandbox(t, "git", "create", name)
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte(strings.Repeat("a line\n", 1000)), 0o600))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"},
		{"push", "-q", filepath.Join(w.cluster.Dir, "git", name+".git"), "main"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", folder}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return w.headOf(t, name)
}

func (w *world) headOf(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("git", "--git-dir="+filepath.Join(w.cluster.Dir, "git", name+".git"), "rev-parse", "main").CombinedOutput()
	check(t, err)
	return string(out)
}
