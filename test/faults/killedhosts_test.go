package faults_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// keptHost is a test Git host that reports its state and the access of credentials.
type keptHost interface {
	State() (string, error)
	testgithost.API
	testgithost.Keyed
}

// killedHosts lists bootstraps on hosts other than GitHub, with their special features: a
// token that cannot be read again, and a personal project.
var killedHosts = map[string]struct {
	open func() (keptHost, *testgithost.Server, error)
	args []string
	// repository is its path in Git URLs.
	repository string
}{
	"gitlab": {
		func() (keptHost, *testgithost.Server, error) {
			g, err := testgithost.OpenGitLab("user ada\ntoken t0ken ada api\ngroup acme private ada=owner\ngroup acme/ops private\n")
			if err != nil {
				return nil, nil, err
			}
			return g, g.Server, nil
		},
		[]string{"gitlab", "--owner=acme", "--repository=fleet", "--team=acme/ops", "--deploy-token-auth"}, "acme/fleet",
	},
	"bitbucket": {
		func() (keptHost, *testgithost.Server, error) {
			b, err := testgithost.OpenBitbucket("user ada\ntoken t0ken ada admin\ngroup ops\n")
			if err != nil {
				return nil, nil, err
			}
			return b, b.Server, nil
		},
		[]string{"bitbucket-server", "--owner=ada", "--personal", "--repository=fleet", "--ssh-key-algorithm=ed25519"}, "~ada/fleet",
	},
}

// TestKilledOnHosts kills a bootstrap at each change on GitLab and on Bitbucket
// Server. A second run must reach the state of an uninterrupted one, and the Secret on
// the cluster must authenticate to the repository.
func TestKilledOnHosts(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t), cluster: sandboxes.Acquire(t, testcluster.Whole)}
	if err := w.cluster.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.playControllers(t)
	for name := range killedHosts {
		whole, state := w.hostVictim(t, name, name+"-whole")
		if out, err := whole.run(0, false); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want, changes := state(), whole.killer.counted()
		if len(changes) < 3 {
			t.Fatalf("only %v were counted", changes)
		}
		t.Logf("%s: %q", name, changes)
		for at := range changes {
			for _, late := range []bool{false, true} {
				id := fmt.Sprintf("%s-%d-%s", name, at+1, map[bool]string{false: "before", true: "after"}[late])
				t.Run(id, func(t *testing.T) {
					t.Parallel()
					v, state := w.hostVictim(t, name, id)
					out, err := v.run(at+1, late)
					var ended *exec.ExitError
					if !errors.As(err, &ended) || ended.ExitCode() != -1 {
						t.Fatalf("it was not killed: %v, %v\n%s", err, v.killer.counted(), out)
					}
					if out, err := v.run(0, false); err != nil {
						t.Fatalf("after a kill at %s: %v\n%s", changes[at], err, out)
					}
					if diff := cmp.Diff(want, state()); diff != "" {
						t.Errorf("after a kill at %s: %s", changes[at], diff)
					}
				})
			}
		}
	}
}

// hostVictim returns a bootstrap on a host, and a function that returns its result.
func (w *world) hostVictim(t *testing.T, name, namespace string) (*victim, func() string) {
	t.Helper()
	row := killedHosts[name]
	host, server, err := row.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, server.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, w: w, namespace: namespace, killer: &killer{}}
	server.Inject(v.killer.fault())
	v.env = environment(t, w.cluster.Kubeconfig, "GITLAB_TOKEN=t0ken", "BITBUCKET_TOKEN=t0ken")
	v.args = slices.Concat([]string{"bootstrap"}, row.args, []string{
		"--hostname=" + server.Hostname, "--ssh-hostname=" + server.SSHHostname, "--ca-file=" + ca, "--path=clusters/demo", "--namespace=" + namespace,
		"--components=source-controller,kustomize-controller", "--network-policy=false",
	})
	return v, func() string {
		state, err := host.State()
		if err != nil {
			t.Fatal(err)
		}
		secret := v.secret()
		access := host.GitAccess(secret["username"], secret["password"], row.repository)
		if key := strings.TrimSpace(secret["identity.pub"]); key != "" {
			access = host.KeyAccess(key, row.repository)
		}
		return strings.ReplaceAll(state, namespace, "NAMESPACE") + fmt.Sprintf("the cluster reads %t, writes %t\n", access.Read, access.Write)
	}
}
