// Package server validates objects with the API server of a sandbox that exists only for that.
package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/kube"
)

// downTime bounds the end of a sandbox.
const downTime = time.Minute

// sandbox is a control plane without controllers.
type sandbox struct{ program, dir string }

// start starts a sandbox in a folder of its own. Its files are removed by stop.
func start(ctx context.Context, program string) (_ *sandbox, _ *kube.Client, err error) {
	dir, err := os.MkdirTemp("", "flux-validate-")
	if err != nil {
		return nil, nil, err
	}
	s := &sandbox{program, dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if _, err := s.run(ctx, "up", "--controllers=none"); err != nil {
		return nil, nil, fmt.Errorf("starting a sandbox: %w", err)
	}
	out, err := s.run(ctx, "env")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the environment of the sandbox: %w", err)
	}
	m := regexp.MustCompile(`(?m)^export KUBECONFIG='([^']*)'$`).FindStringSubmatch(out)
	if m == nil {
		return nil, nil, errors.New("reading the environment of the sandbox: no KUBECONFIG")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", m[1])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig of the sandbox: %w", err)
	}
	client, err := kube.New(cfg)
	return s, client, err
}

// run runs a command of flux-sandbox, which ends by itself when it is interrupted.
func (s *sandbox) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program, append(args, "--dir", s.dir)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = downTime
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// stop stops the sandbox and removes its files, also after an interrupt.
func (s *sandbox) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), downTime)
	defer cancel()
	if _, err := s.run(ctx, "down", "--purge"); err != nil {
		return fmt.Errorf("stopping the sandbox: %w", err)
	}
	return os.RemoveAll(s.dir)
}
