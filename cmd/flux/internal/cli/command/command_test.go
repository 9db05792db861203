package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestWithKind checks which arguments become the subcommand of a kind.
func TestWithKind(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "flux"}
	run := func(*cobra.Command, []string) {}
	for _, name := range []string{"debug", "get"} {
		group := &cobra.Command{Use: name, Run: run}
		group.AddCommand(&cobra.Command{Use: "kustomization", Aliases: []string{"ks"}, Run: run}, &cobra.Command{Use: "helmrelease", Aliases: []string{"hr"}, Run: run})
		root.AddCommand(group)
	}
	for args, want := range map[string]string{
		"debug ks/app":                     "debug kustomization app",
		"debug ks/apps/app -o json":        "debug kustomization app -o json --namespace=apps",
		"debug ks/app hr/app":              "debug kustomization ks/app hr/app",
		"debug ks/apps/app ks/app -o json": "debug kustomization ks/apps/app ks/app -o json",
		"debug ks/app app":                 "debug kustomization app app",
		"debug ks/app --for hr/app":        "debug kustomization app --for hr/app",
		"debug ks/app --file=a/b ./ks/app": "debug kustomization app --file=a/b ./ks/app",
		"debug --path ks/app":              "debug --path ks/app",
		"debug source/git/app":             "debug source/git/app",
		"debug source/git/app ks/app":      "debug source/git/app kustomization app",
		"get ks/app":                       "get ks/app",
	} {
		if diff := cmp.Diff(strings.Fields(want), WithKind(root, strings.Fields(args))); diff != "" {
			t.Errorf("%s:\n%s", args, diff)
		}
	}
}
