// Package sandbox runs temporary sandboxes: a Kubernetes API with the Flux controllers and a Git
// server in a temporary folder, which is removed at the end.
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
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/kube"
)

const (
	// startTime is the maximum time to start a sandbox, also on a busy machine.
	startTime = 3 * time.Minute
	// stopTime is the maximum time to stop one. It does not depend on the context of the work.
	stopTime = 2 * time.Minute
	// grace is the time that an interrupted command of the sandbox has to clean up.
	grace = time.Minute
)

// Branch is the branch of served repositories.
const Branch = "main"

// Sandbox is a running sandbox.
type Sandbox struct {
	// Client is a client of the administrator.
	Client *kube.Client
	// GitURL is the URL of the Git server, and Registry the address of the registry.
	GitURL, Registry string

	program, dir string
}

// Start starts a sandbox with the given controllers, which may be none. If it fails or ctx ends,
// nothing is left.
func Start(ctx context.Context, program string, controllers []string) (*Sandbox, error) {
	// The path is short, because the folder contains sockets.
	dir, err := os.MkdirTemp("", "flux-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the sandbox: %w", err)
	}
	s := &Sandbox{program: program, dir: dir}
	if err := s.start(ctx, controllers); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// exports matches the output of flux-sandbox env.
var exports = regexp.MustCompile(`(?m)^export (?:FLUX_SANDBOX_)?([A-Z_]+)='([^']*)'$`)

func (s *Sandbox) start(ctx context.Context, controllers []string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if _, err := s.run(ctx, "up", "--controllers="+strings.Join(controllers, ",")); err != nil {
		return err
	}
	out, err := s.run(ctx, "env")
	if err != nil {
		return err
	}
	env := map[string]string{}
	for _, m := range exports.FindAllStringSubmatch(string(out), -1) {
		env[m[1]] = m[2]
	}
	s.GitURL, s.Registry = env["GIT_URL"], env["REGISTRY"]
	cfg, err := clientcmd.BuildConfigFromFlags("", env["KUBECONFIG"])
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the sandbox: %w", err)
	}
	s.Client, err = kube.New(cfg)
	return err
}

// run runs a command of flux-sandbox and returns its standard output.
func (s *Sandbox) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.program, append(args, "--dir", s.dir)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return out.Bytes(), fmt.Errorf("%s %s: %w: %s", helper.Sandbox, args[0], err, lastLine(log.String()))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], "✗ ")
}

// Close stops the sandbox and removes its folder.
func (s *Sandbox) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if _, err := s.run(ctx, "down"); err != nil {
		return fmt.Errorf("stopping the sandbox in %s: %w", s.dir, err)
	}
	return os.RemoveAll(s.dir)
}

// Serve serves files as a repository with one commit on Branch, and returns its URL.
func (s *Sandbox) Serve(ctx context.Context, name string, files map[string][]byte, now time.Time) (address string, err error) {
	if _, err := s.run(ctx, "git", "create", name, "--branch", Branch); err != nil {
		return "", err
	}
	address = s.GitURL + "/" + name + ".git"
	repository, err := gitrepo.New(gitrepo.Remote{URL: address}, Branch)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, repository.Close()) }()
	commit := gitrepo.Change{Message: "Serve the working tree", AuthorName: "flux", AuthorEmail: "flux@localhost", When: now, Files: files}
	if _, err := repository.Commit(commit); err != nil {
		return "", err
	}
	return address, repository.Push(ctx, func(error) {})
}

// Replace makes a commit with other files in a repository that Serve has returned. There is none if
// the files are the same.
func (s *Sandbox) Replace(ctx context.Context, address string, before, files map[string][]byte, now time.Time) (err error) {
	repository, err := gitrepo.Open(ctx, gitrepo.Remote{URL: address}, Branch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repository.Close()) }()
	commit := gitrepo.Change{Message: "Serve another revision", AuthorName: "flux", AuthorEmail: "flux@localhost", When: now, Files: files}
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

// Versions returns the versions of the controllers that run, by name.
func (s *Sandbox) Versions(ctx context.Context) (map[string]string, error) {
	// The command exits with 1 if a part is not healthy; the versions are known nevertheless.
	out, err := s.run(ctx, "status", "-o", "json")
	var status struct {
		Processes []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"processes"`
	}
	if decodeErr := json.Unmarshal(out, &status); decodeErr != nil {
		return nil, errors.Join(err, decodeErr)
	}
	versions := map[string]string{}
	for _, p := range status.Processes {
		if p.Version != "" {
			versions[filepath.Base(p.Name)] = p.Version
		}
	}
	return versions, nil
}

// Fault is a fault of a server: one of Down, Status and Delay is set.
type Fault struct {
	// Down closes connections without an answer.
	Down bool
	// Status is the HTTP status of all answers.
	Status int
	// Delay is the time before each answer.
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
	_, err := s.run(ctx, args...)
	return err
}

// ClearFault ends the fault of a server.
func (s *Sandbox) ClearFault(ctx context.Context, server string) error {
	_, err := s.run(ctx, "fault", "clear", server)
	return err
}

// RestartAPIServer restarts the API server, and returns when it is ready again.
func (s *Sandbox) RestartAPIServer(ctx context.Context) error {
	_, err := s.run(ctx, "restart", "kube-apiserver")
	return err
}
