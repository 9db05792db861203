// Package sandbox runs temporary sandboxes: a Kubernetes API with the Flux controllers and a Git
// server in a temporary directory, which is removed at the end.
package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/lazy"
)

const (
	// startTime is the maximum time to start a sandbox. It is sufficient on a busy machine.
	startTime = 3 * time.Minute
	// stopTime is the maximum time to stop a sandbox, even if the context of its user has ended.
	stopTime = 2 * time.Minute
	// grace is the time that an interrupted flux-sandbox command has to clean up.
	grace = time.Minute
)

// Branch is the branch of repositories that Serve creates.
const Branch = "main"

// Sandbox is a running sandbox. Its objects are untrusted, so it is isolated from this machine and from other users.
type Sandbox struct {
	// Client is the administrator's client, and Guard the client of the user that is allowed to change flux's
	// policies.
	Client, Guard *kube.Client
	// GitURL is the URL of the Git server, and Registry the address of the registry, as the controllers use them.
	GitURL, Registry string
	// Isolated is set if the controllers cannot access the network.
	Isolated bool

	program, dir   string
	user, password string
	// parent is one end of a pipe. The sandbox ends when parent is closed.
	parent *os.File
}

// Options configures Start.
type Options struct {
	// Controllers lists the controllers to run, and Namespace is their namespace.
	Controllers []string
	Namespace   string
	// AllowNetwork allows the controllers to connect to other machines and to all programs on this machine.
	AllowNetwork bool
	// FeatureGates lists the feature gates of the API server, e.g. Name=true,Other=false.
	FeatureGates string
}

// notIsolated is the exit code of flux-sandbox up on a machine that cannot isolate the sandbox.
const notIsolated = 4

// ErrNotIsolated is returned by Start on a machine that cannot isolate the sandbox.
var ErrNotIsolated = errors.New("this machine cannot isolate the sandbox from the network")

// Start starts a sandbox. If it fails, ctx ends, or this program is killed, nothing is left behind.
func Start(ctx context.Context, program string, o Options) (*Sandbox, error) {
	// The path must be short, because the directory contains sockets.
	dir, err := os.MkdirTemp("", "flux-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the sandbox: %w", err)
	}
	s := &Sandbox{program: program, dir: dir, Isolated: !o.AllowNetwork}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// exports matches the output of flux-sandbox env.
var exports = lazy.Regexp(`(?m)^export (?:FLUX_SANDBOX_)?([A-Z_]+)='([^']*)'$`)

func (s *Sandbox) start(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.up(ctx, o); err != nil {
		return err
	}
	out, err := s.run(ctx, nil, "env")
	if err != nil {
		return err
	}
	env := map[string]string{}
	for _, m := range exports().FindAllStringSubmatch(string(out), -1) {
		env[m[1]] = m[2]
	}
	s.GitURL, s.Registry, s.user, s.password = env["GIT_URL"], env["REGISTRY"], env["USER"], env["PASSWORD"]
	if !s.Isolated { // the Git server cannot distinguish the controllers from other users of this machine
		s.GitURL = strings.Replace(s.GitURL, "://", "://"+s.Credentials()+"@", 1)
	}
	if s.Client, err = connect(env["KUBECONFIG"]); err != nil {
		return err
	}
	s.Guard, err = connect(env["GUARD_KUBECONFIG"])
	return err
}

func connect(kubeconfig string) (*kube.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the sandbox: %w", err)
	}
	return kube.New(cfg)
}

// up starts the processes. The sandbox inherits one end of a pipe, and ends when the other end is closed by Close, or
// by the system when this program exits.
func (s *Sandbox) up(ctx context.Context, o Options) error {
	child, parent, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the sandbox: %w", err)
	}
	s.parent = parent
	args := []string{"up", "--untrusted", "--parent=3", "--controllers=" + strings.Join(o.Controllers, ","), "--namespace=" + o.Namespace}
	if o.AllowNetwork {
		args = append(args, "--allow-network")
	}
	if o.FeatureGates != "" {
		args = append(args, "--feature-gates="+o.FeatureGates)
	}
	_, err = s.run(ctx, child, args...)
	err = errors.Join(err, child.Close())
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.ExitCode() == notIsolated {
		return hint.Errorf("allow user namespaces (Ubuntu: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0), or "+
			"allow access to local services and other hosts with --allow-network", "%w: %w", ErrNotIsolated, err)
	}
	if limit := memoryLimit(); exited != nil && limit < virtualMemory {
		return hint.Errorf("raise the limit, e.g. with 'ulimit -v unlimited'", "the virtual memory limit (ulimit -v) is %d MiB, but a sandbox process can require %d MiB: %w",
			limit>>20, virtualMemory>>20, err)
	}
	return err
}

// virtualMemory is sufficient for the largest process of a sandbox, the API server.
const virtualMemory = 3 << 30

// Remote returns the repository at a URL from Serve, with the settings for access from this program.
func (s *Sandbox) Remote(address string) remote.Repository {
	address = strings.Replace(address, s.Credentials()+"@", "", 1)
	return remote.Repository{URL: address, Auth: remote.Basic(s.user, s.password)}
}

// Credentials returns the user and password for the Git server and the registry.
func (s *Sandbox) Credentials() string { return s.user + ":" + s.password }

// Dir returns the state directory of the sandbox.
func (s *Sandbox) Dir() string { return s.dir }

// Reach allows the controllers to connect to a server in this program.
func (s *Sandbox) Reach(ctx context.Context, address string) error {
	_, err := s.run(ctx, nil, "reach", address)
	return err
}

// run runs a flux-sandbox command that inherits file, and returns its standard output.
func (s *Sandbox) run(ctx context.Context, inherited *os.File, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.program, append(args, "--dir", s.dir)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	if inherited != nil {
		cmd.ExtraFiles = []*os.File{inherited}
	}
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return out.Bytes(), fmt.Errorf("%s %s: %w: %s", helper.Sandbox, args[0], err, reason(log.String()))
}

// crash matches the first line that a Go program prints when it crashes.
var crash = lazy.Regexp(`(?m)^\s*(?:✗ )?((?:panic|fatal error|runtime): .*)$`)

// reason returns the output line that explains a failure: the first line of a crash, else the last line.
func reason(text string) string {
	if m := crash().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	text = strings.TrimSpace(text)
	return strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], "✗ ")
}

// Close stops the sandbox and removes its directory.
func (s *Sandbox) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_, err := s.run(ctx, nil, "down")
	if s.parent != nil { // if down has failed, closing the pipe makes the sandbox stop and remove its directory
		err = errors.Join(err, s.parent.Close())
	}
	if err != nil {
		return fmt.Errorf("stopping the sandbox in %s: %w", s.dir, err)
	}
	return os.RemoveAll(s.dir)
}

// Serve serves files as a repository with one commit on Branch, and returns its URL.
func (s *Sandbox) Serve(ctx context.Context, name string, files map[string][]byte, now time.Time) (address string, err error) {
	if _, err := s.run(ctx, nil, "git", "create", name, "--branch", Branch); err != nil {
		return "", err
	}
	address = s.GitURL + "/" + name + ".git"
	repository, err := remote.New(s.Remote(address), Branch)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, repository.Close()) }()
	commit := remote.Change{Message: "Serve the working tree", AuthorName: "flux", AuthorEmail: "flux@localhost", When: now, Files: files}
	if _, err := repository.Commit(commit); err != nil {
		return "", err
	}
	return address, repository.Push(ctx, func(error) {})
}

// Replace commits new content to a repository from Serve. It makes no commit if the files are unchanged.
func (s *Sandbox) Replace(ctx context.Context, address string, before, files map[string][]byte, now time.Time) (err error) {
	repository, err := remote.Open(ctx, s.Remote(address), Branch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repository.Close()) }()
	commit := remote.Change{Message: "Serve another revision", AuthorName: "flux", AuthorEmail: "flux@localhost", When: now, Files: files}
	for name := range before {
		if _, kept := files[name]; !kept {
			commit.Removed = append(commit.Removed, name)
		}
	}
	changed, err := repository.Commit(commit)
	if err != nil || !changed {
		return err
	}
	return repository.Push(ctx, func(error) {})
}

// Controllers returns the versions of the running controllers by name, and the arguments in their Deployments that the
// sandbox ignores.
func (s *Sandbox) Controllers(ctx context.Context) (versions map[string]string, ignored []string, err error) {
	// The command exits with 1 if a component is unhealthy, but still prints the versions.
	out, err := s.run(ctx, nil, "status", "-o", "json")
	var status struct {
		Processes []struct {
			Name    string   `json:"name"`
			Version string   `json:"version"`
			Ignored []string `json:"ignored"`
		} `json:"processes"`
	}
	if decodeErr := json.Unmarshal(out, &status); decodeErr != nil {
		return nil, nil, errors.Join(err, decodeErr)
	}
	versions = map[string]string{}
	for _, p := range status.Processes {
		if p.Version != "" {
			versions[filepath.Base(p.Name)] = p.Version
		}
		ignored = append(ignored, p.Ignored...)
	}
	slices.Sort(ignored)
	return versions, slices.Compact(ignored), nil
}

// Fault is a fault of a server: one of Down, Status and Delay is set.
type Fault struct {
	// Down closes connections without a response.
	Down bool
	// Status is the HTTP status of all responses.
	Status int
	// Delay is the time before each response.
	Delay time.Duration
	// For is the time after which the fault ends, 0 for never.
	For time.Duration
}

// SetFault makes the Git server or the registry fail.
func (s *Sandbox) SetFault(ctx context.Context, server string, f Fault) error {
	args := []string{"fault", "set", server}
	switch {
	case f.Down:
		args = append(args, "--down")
	case f.Status != 0:
		args = append(args, "--status="+strconv.Itoa(f.Status))
	default:
		args = append(args, "--delay="+f.Delay.String())
	}
	if f.For > 0 {
		args = append(args, "--for="+f.For.String())
	}
	_, err := s.run(ctx, nil, args...)
	return err
}

// ClearFault ends the fault of a server.
func (s *Sandbox) ClearFault(ctx context.Context, server string) error {
	_, err := s.run(ctx, nil, "fault", "clear", server)
	return err
}

// RestartAPIServer restarts the API server and waits until it is ready.
func (s *Sandbox) RestartAPIServer(ctx context.Context) error {
	_, err := s.run(ctx, nil, "restart", "kube-apiserver")
	return err
}
