package main

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/gitcommand"
)

// newGitCommand makes the git word. It lives in a package of its own so that its tests need not build Kubernetes.
func newGitCommand(dir func() string) *cobra.Command { return gitcommand.New(dir) }
