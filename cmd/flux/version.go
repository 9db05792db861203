package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

type versionOptions struct {
	client bool
	format string
}

func newVersion(a *app) *cobra.Command {
	o := &versionOptions{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of flux and of Flux on the cluster",
		Long: `Show the version of this tool, and of the Flux distribution and its
controllers on the cluster. The tool has a version of its own; it embeds
Flux ` + controllers.Distribution + `. With -o json it also shows the Git commit that
the tool was built from, and the time of this commit.`,
		Example: `  # Show the versions of this tool and of Flux on the cluster
  flux version

  # Show the version of this tool without access to a cluster
  flux version --client

  # Show the commit that this tool was built from
  flux version --client -o json | jq -r .commit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.versions(cmd, o) },
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "show the version of this tool only")
	cmd.Flags().StringVarP(&o.format, "output", "o", "yaml", "output format: yaml or json")
	return cmd
}

// versionEntry is a line of the answer.
type versionEntry struct{ name, version string }

func (a *app) versions(cmd *cobra.Command, o *versionOptions) error {
	if o.format != "yaml" && o.format != "json" {
		return fmt.Errorf("output format %q is not known: use yaml or json", o.format)
	}
	entries := []versionEntry{{"flux", "v" + strings.TrimPrefix(version, "v")}}
	if o.format == "json" && commit != "" {
		// Not in YAML: that is what people read, and scripts of Flux 2.9 parse.
		entries = append(entries, versionEntry{"commit", commit}, versionEntry{"date", date})
	}
	if o.client {
		return a.printVersions(o.format, entries)
	}
	installed, failed := a.installedVersions(cmd)
	// What this program knows by itself is an answer also without a cluster.
	if err := a.printVersions(o.format, append(entries, installed...)); err != nil {
		return err
	}
	return failed
}

func (a *app) installedVersions(cmd *cobra.Command) ([]versionEntry, error) {
	client, namespace, err := a.place(cmd)
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	return clusterVersions(ctx, client, namespace)
}

// clusterVersions reads everything out of the Deployments: each carries the
// version of the distribution that it came with.
func clusterVersions(ctx context.Context, client *kube.Client, namespace string) ([]versionEntry, error) {
	var distribution string
	images := map[string]string{}
	_, err := client.List(ctx, builtin("apps/v1", "Deployment"), kube.Selection{Namespace: namespace, Labels: kube.PartOfFlux}, func(o controllers.Object) error {
		name := controllers.Name(o)
		images[name] = tagOf(controllers.Path{"spec.template.spec.containers[0].image"}.String(o))
		// The source-controller is in every installation, so it speaks for all.
		if label := kube.Label(o, kube.VersionLabel); distribution == "" || name == "source-controller" {
			distribution = label
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the controllers in namespace %q: %w", namespace, err)
	}
	if len(images) == 0 {
		return nil, notInstalled(ctx, client, namespace)
	}
	var entries []versionEntry
	if distribution != "" {
		entries = append(entries, versionEntry{"distribution", "flux-" + distribution})
	}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		entries = append(entries, versionEntry{name, images[name]})
	}
	return entries, nil
}

// notInstalled says that there is no Flux in a namespace, and where there is one.
func notInstalled(ctx context.Context, client *kube.Client, namespace string) error {
	hint := "install it with 'flux install'; 'flux version --client' needs no cluster"
	// Who may not look for definitions gets the general hint.
	if crd, err := find(ctx, client, crdResource(), definition); err == nil {
		hint = cmp.Or(elsewhere(crd, namespace), hint)
	}
	return hinted(hint, "no controllers of Flux found in namespace %q", namespace)
}

// tagOf returns the tag of an image, or its digest where it has no tag.
func tagOf(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}

func (a *app) printVersions(format string, entries []versionEntry) error {
	if format == "json" {
		fields := map[string]string{}
		for _, e := range entries {
			fields[e.name] = e.version
		}
		text, err := json.MarshalIndent(fields, "", "  ")
		if err != nil {
			return err
		}
		return a.printf("%s\n", text)
	}
	for _, e := range entries {
		line, err := yaml.Marshal(map[string]string{e.name: e.version})
		if err != nil {
			return err
		}
		if err := a.printf("%s", line); err != nil {
			return err
		}
	}
	return nil
}
