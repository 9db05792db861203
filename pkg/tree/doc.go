// Package tree collects the objects that a Flux object manages: from its
// inventory to nested Kustomizations and HelmReleases and, by owner references,
// to the pods, with their status.
//
// Build collects and prints nothing; Text, Wide, JSON and YAML print the
// result. The package also builds dependency graphs and traces objects to their
// sources.
package tree
