package main

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/gitcommand"
)

// newGitCommand returns the git command. Its package is separate so that its tests do not compile Kubernetes.
func newGitCommand(dir func() string) *cobra.Command { return gitcommand.New(dir) }
