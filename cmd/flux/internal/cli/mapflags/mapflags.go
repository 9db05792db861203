// Package mapflags has the flags that replace sources with directories.
package mapflags

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/vendored"
)

// Flags holds the flag values.
type Flags struct {
	mappings []string
	// Vendor is the directory of vendored sources, or "".
	Vendor string
}

// Add adds the flags to a command.
func (m *Flags) Add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&m.mappings, "map", nil, "local directory to use instead of the source at a URL, e.g. oci://ghcr.io/acme/charts=./charts: files of a Git repository, charts of a Helm repository, objects of a bucket (https://ENDPOINT/BUCKET), an OCI layout, or files of an OCI artifact (repeatable)")
	fs.StringVar(&m.Vendor, "vendor", "", "directory with sources fetched by 'flux test vendor', e.g. "+mapped.VendorFolder)
	complete.Flag(cmd, "vendor", CompleteDirectories)
}

// CompleteDirectories completes the names of directories.
func CompleteDirectories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Given returns the mappings of --map.
func (m *Flags) Given() ([]mapped.Mapping, error) {
	var all []mapped.Mapping
	for _, text := range m.mappings {
		one, err := mapped.Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// All returns the mappings of --map, followed by vendored sources that --map does not replace.
func (m *Flags) All(ctx context.Context) ([]mapped.Mapping, error) {
	given, err := m.Given()
	if err != nil || m.Vendor == "" {
		return given, err
	}
	folder, err := vendored.Open(m.Vendor)
	if err != nil {
		return nil, err
	}
	all := append(given, folder.Mappings(func(kind, url string) bool {
		return slices.ContainsFunc(given, func(one mapped.Mapping) bool { return one.Serves(ctx, kind, url) })
	})...)
	return all, folder.Close()
}
