//go:build linux

package confine_test

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// canary is the content of files that no command may read.
const canary = "canary-of-this-machine"

// credentials lists files in the home directory of the user. It contains no AWS and Google Cloud credentials, which flux
// uses for SOPS documents of trusted authors.
var credentials = []string{
	".azure/msal_token_cache.json", ".docker/config.json", ".gitconfig", ".gnupg/pubring.kbx", ".kube/config", ".netrc", ".ssh/config",
	".ssh/id_ed25519", ".ssh/known_hosts", ".vault-token",
}

// machine contains the directories of a user for one repository, and a server.
type machine struct {
	home, temporary, outside string
	server                   *server
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "outside.yaml"), listen(t)}
	writeFile(t, m.outside, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: outside}\ndata: {a: "+canary+"}\n")
	for _, name := range credentials {
		writeFile(t, filepath.Join(m.home, name), canary+"\n")
	}
	return m
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// repository commits the files without those of the stranger, and then with them.
func (m machine) repository(t *testing.T, s stranger) string {
	t.Helper()
	dir := writeRepository(t, map[string]string{cluster + "/base.yaml": strings.ReplaceAll(plain, "plain", "base")})
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-qm", "base")
	in := strings.NewReplacer("$SERVER", m.server.address, "$OUTSIDE", m.outside)
	for name, content := range s.files {
		writeFile(t, filepath.Join(dir, name), in.Replace(content))
	}
	for name, to := range s.links {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.Symlink(in.Replace(to), filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-qm", "change")
	return dir
}

// rendering lists the commands that render a repository, from the commit and from the work tree. The first one prints the
// changes.
var rendering = [][]string{
	{"diff", "--base=HEAD~1", "--path=" + cluster},
	{"validate", "--revision=HEAD", "--path=" + cluster},
	{
		"build", "kustomization", "flux-system", "--dry-run", "--recursive", "--with-helm", "--path=" + cluster,
		"--kustomization-file=" + cluster + "/flux-system/gotk-sync.yaml", "--local-sources=GitRepository/flux-system/flux-system=.",
	},
}

// controlled is the command that runs the controllers.
var controlled = []string{"test", "--path=" + cluster}

// run traces a command in a repository.
func (m machine) run(t *testing.T, flux, dir string, args []string) trace {
	t.Helper()
	env := []string{"HOME=" + m.home, "TMPDIR=" + m.temporary, "PATH=" + os.Getenv("PATH"), "FLUX_SANDBOX_BIN=" + testcluster.Bin(), "CANARY=" + canary}
	return traced(t, dir, env, flux, args...)
}

// gitServer lists the programs of the Git server of a sandbox, and its hook.
var gitServer = []string{
	"git check-ref-format", "git for-each-ref", "git http-backend", "git init", "git pack-objects", "git receive-pack", "git rev-list",
	"git unpack-objects", "git upload-pack", "git-http-backend", "update",
}

// gnuPG matches the programs and files that kustomize-controller uses to decrypt: gpg and its agent, which can access the
// files of the controller, their socket, and the system libraries.
var gnuPG = regexp.MustCompile(`^(/\S+/flux-\d+/programs/gpg|/usr/bin/gpg-agent|/\S+/sops-gnupghome-\d+/S\.gpg-agent|(/usr)?/lib(64)?/\S+\.so[.0-9]*|/etc/ld\.so\.cache)$`)

// violations returns accesses of a command outside of its directories. baseline lists the files that commands also open for
// a harmless repository.
func (m machine) violations(dir string, baseline map[string]bool, done trace) []string {
	var found []string
	programs := []string{testcluster.Bin(), "/proc/self/exe"}
	for program := range done.executed {
		path, argument, _ := strings.Cut(program, " ")
		server := slices.Contains(gitServer, strings.TrimSpace(filepath.Base(path)+" "+argument)) && !below(path, dir, m.home, m.temporary)
		if !server && !below(path, programs...) && !gnuPG.MatchString(path) {
			found = append(found, "runs "+program)
		}
	}
	for address := range done.connected {
		at, err := netip.ParseAddrPort(address)
		if (err != nil || !at.Addr().IsLoopback() || address == m.server.address) && !gnuPG.MatchString(address) {
			found = append(found, "connects to "+address)
		}
	}
	for file := range done.opened {
		secret := below(file, filepath.Dir(m.outside)) || below(file, "/proc") && filepath.Base(file) == "environ" || slices.ContainsFunc(credentials, func(name string) bool { return file == filepath.Join(m.home, name) })
		if secret || !baseline[file] && !m.mayOpen(dir, file) && !gnuPG.MatchString(file) {
			found = append(found, "opens "+file)
		}
	}
	if strings.Contains(done.output, canary) {
		found = append(found, "prints what is not in the repository")
	}
	slices.Sort(found)
	return found
}

// below reports whether a path is one of the others or below it.
func below(path string, others ...string) bool {
	return slices.ContainsFunc(others, func(o string) bool { return path == o || strings.HasPrefix(path, strings.TrimSuffix(o, "/")+"/") })
}

// mayOpen reports whether a file is in a directory of the repository, the user, the programs or the kernel.
func (m machine) mayOpen(dir, file string) bool {
	return below(file, dir, m.home, m.temporary, testcluster.Bin(), "/proc", "/sys", "/dev/null")
}

// check fails if a command did something that is not allowed.
func (m machine) check(t *testing.T, dir string, baseline map[string]bool, args []string, done trace) {
	t.Helper()
	if found := m.violations(dir, baseline, done); len(found) > 0 {
		t.Errorf("flux %s:\n%s\n%s", strings.Join(args, " "), strings.Join(found, "\n"), done.output)
	}
}

// TestNightlyStrangers runs the CI commands on untrusted repositories under strace. They must not run programs, connect to
// servers, or read files outside of the repository, except for files that they also read for a harmless repository.
func TestNightlyStrangers(t *testing.T) {
	flux := fluxWithSandbox(t)
	m := newMachine(t)
	dir := m.repository(t, released("harmless", plain, cluster+"/app.yaml", app, "app/app.yaml", strings.ReplaceAll(plain, "plain", "app")))
	baseline := map[string]bool{}
	for _, args := range append(slices.Clone(rendering), controlled) {
		done := m.run(t, flux, dir, args)
		maps.Copy(baseline, done.opened)
		m.check(t, dir, baseline, args, done)
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(baseline)), func(file string) bool { return m.mayOpen(dir, file) })
	t.Logf("files that all repositories need: %q", others)
	for _, s := range strangers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			sandboxes.Acquire(t, testcluster.Started)
			s.test(t, flux, baseline)
		})
	}
}

// test runs the commands on the repository.
func (s stranger) test(t *testing.T, flux string, baseline map[string]bool) {
	m := newMachine(t)
	dir := m.repository(t, s)
	for i, args := range rendering {
		done := m.run(t, flux, dir, args)
		m.check(t, dir, baseline, args, done)
		if len(done.connected) > 0 { // nothing is part of a sandbox
			t.Errorf("flux %s connects to %q", strings.Join(args, " "), slices.Sorted(maps.Keys(done.connected)))
		}
		if (i == 0 || done.code != 0) && !strings.Contains(done.output, s.rendered) {
			t.Errorf("flux %s does not print %q:\n%s", strings.Join(args, " "), s.rendered, done.output)
		}
	}
	done := m.run(t, flux, dir, controlled)
	m.check(t, dir, baseline, controlled, done)
	if !strings.Contains(done.output, s.tested) {
		t.Errorf("flux test does not print %q:\n%s", s.tested, done.output)
	}
	if n := m.server.connections.Load(); n > 0 {
		t.Errorf("%d connections to the server", n)
	}
	if left, err := os.ReadDir(m.temporary); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// TestNightlyTrace checks that the trace contains the programs, connections and files of flux and of a shell, which the
// other test evaluates.
func TestNightlyTrace(t *testing.T) {
	flux := fluxWithSandbox(t)
	m := newMachine(t)
	env := []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "OUTSIDE=" + m.outside, "SERVER=" + m.server.address}
	done := traced(t, t.TempDir(), env, "/bin/sh", "-c", `/bin/cat "$OUTSIDE" "$HOME/.netrc"; /bin/git ls-remote "http://$SERVER/x.git" || exit 1`)
	found := m.violations(t.TempDir(), nil, done)
	for _, want := range []string{"runs /bin/cat", "runs /bin/git ls-remote", "connects to " + m.server.address, "opens " + m.outside, "opens " + m.home + "/.netrc", "prints what is not in the repository"} {
		if !slices.Contains(found, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(found, "\n"))
		}
	}
	// The server of a source is reached if the user allows it.
	dir := m.repository(t, sourced("a GitRepository on a server", "GitRepository", `url: "http://$SERVER/fleet.git"`))
	for _, c := range []struct {
		flags   []string
		reached bool
	}{{nil, false}, {[]string{"--allow-network"}, true}} {
		before := m.server.connections.Load()
		done := m.run(t, flux, dir, slices.Concat(controlled, c.flags))
		traced := slices.Contains(m.violations(dir, done.opened, done), "connects to "+m.server.address)
		if reached := m.server.connections.Load() > before; reached != c.reached || traced != c.reached {
			t.Errorf("flux test %q: the server is reached: %t, in the trace: %t", c.flags, reached, traced)
		}
	}
}
