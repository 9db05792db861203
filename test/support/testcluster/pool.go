package testcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// Need is the kind of sandbox that a test requires.
type Need int

const (
	// API is a namespace in a shared sandbox with the CRDs of Flux and without controllers.
	API Need = iota
	// Controllers is a namespace in a shared sandbox with all controllers in the namespace flux-system.
	// Its Git server requires the credentials GitUser and GitPassword.
	Controllers
	// Whole is a sandbox without CRDs and controllers, for tests that change objects outside of a
	// namespace.
	Whole
	// WholeControllers is a sandbox that runs the controllers that a test installs. It is for tests that
	// install, stop or configure controllers.
	WholeControllers
	// Started reserves a slot for a sandbox that the program under test starts.
	Started
)

// GitUser and GitPassword are the credentials for the Git server of a sandbox that tests share.
const (
	GitUser     = "dev"
	GitPassword = "correct horse"
)

// Pool provides sandboxes to the tests of a test binary.
type Pool struct {
	// slots limits the number of running sandboxes.
	slots      chan struct{}
	namespaces atomic.Int32
	api, all   sharing
}

// sharing is a shared sandbox, which the first test that requires it starts.
type sharing struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// NewPool returns the pool of a test binary, which runs its tests in Around. The number of running
// sandboxes is limited to the number of CPUs plus one, because shared sandboxes are mostly idle.
func NewPool() *Pool { return &Pool{slots: make(chan struct{}, runtime.NumCPU()+1)} }

// Acquire returns a sandbox for a test and its subtests, or nil for Started. It waits while too many
// others are running.
func (p *Pool) Acquire(t testing.TB, need Need) *Cluster {
	t.Helper()
	switch need {
	case API:
		return p.share(t, &p.api, "none", (*Cluster).InstallCRDs)
	case Controllers:
		return p.share(t, &p.all, "all", (*Cluster).installFlux)
	}
	p.slots <- struct{}{}
	t.Cleanup(func() { <-p.slots })
	switch need {
	case Whole:
		return Start(t, "none")
	case WholeControllers:
		return Start(t, "all")
	default:
		return nil
	}
}

// share returns a namespace in a shared sandbox, which the first call starts.
func (p *Pool) share(t testing.TB, s *sharing, controllers string, prepare func(*Cluster, context.Context) error) *Cluster {
	t.Helper()
	s.once.Do(func() {
		p.slots <- struct{}{} // until the process ends
		Programs(t)           // building flux is not part of the time to start
		if s.cluster, s.err = Up(context.Background(), controllers); s.err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), testlimit.Wait)
			defer cancel()
			s.err = prepare(s.cluster, ctx)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster.inNamespace(t, int(p.namespaces.Add(1)))
}

// Around returns a function that runs the tests and then stops the shared sandboxes.
func (p *Pool) Around(tests interface{ Run() int }) interface{ Run() int } { return around{p, tests} }

type around struct {
	pool  *Pool
	tests interface{ Run() int }
}

// Run implements testscript.TestingM.
func (a around) Run() int {
	code := a.tests.Run()
	for _, s := range []*sharing{&a.pool.api, &a.pool.all} {
		if s.cluster == nil {
			continue
		}
		if err := s.cluster.Down(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			code = max(code, 1)
		}
	}
	return code
}

// installFlux installs all controllers and makes the Git server require a password.
func (c *Cluster) installFlux(ctx context.Context) error {
	dir, err := programs()
	if err != nil {
		return err
	}
	install := exec.CommandContext(ctx, filepath.Join(dir, "flux"), "install", "--kubeconfig="+c.Kubeconfig,
		"--components-extra=image-reflector-controller,image-automation-controller,source-watcher")
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("installing Flux: %w\n%s", err, out)
	}
	lock := exec.CommandContext(ctx, filepath.Join(Bin(), "flux-sandbox"), "git", "credentials", "set", "--username="+GitUser, "--password-stdin", "--dir", c.Dir)
	lock.Stdin = strings.NewReader(GitPassword + "\n")
	if out, err := lock.CombinedOutput(); err != nil {
		return fmt.Errorf("setting the password of the Git server: %w\n%s", err, out)
	}
	return nil
}

// inNamespace returns the cluster with a new namespace, which is deleted at the end of the test.
func (c *Cluster) inNamespace(t testing.TB, number int) *Cluster {
	t.Helper()
	name := strings.Trim(strings.Map(letter, strings.ToLower(t.Name())), "-")
	part := *c
	part.Namespace = strings.TrimRight(fmt.Sprintf("t%d-%.32s", number, name), "-")
	if err := part.Seed(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+part.Namespace+"}\n"), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testlimit.Wait)
		defer cancel()
		namespace := kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		if err := c.Client.Remove(ctx, namespace, "", part.Namespace); err != nil {
			t.Error(err)
		}
	})
	return &part
}

// letter replaces characters that are not allowed in object names.
func letter(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}
