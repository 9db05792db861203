package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// EmbeddedVersion returns the embedded distribution that a flag such as --to selects.
func EmbeddedVersion(flag, version string) (controllers.Distribution, error) {
	d, ok := controllers.FindDistribution(version)
	if !ok {
		return d, hint.Errorf("the embedded versions are "+strings.Join(controllers.EmbeddedVersions(), ", "), "%s: Flux %s is not embedded", flag, version)
	}
	return d, nil
}

// CompleteEmbeddedVersion registers the embedded versions as the completions of a flag.
func CompleteEmbeddedVersion(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(controllers.EmbeddedVersions(), cobra.ShellCompDirectiveNoFileComp)) // fails only for unknown flags
}
