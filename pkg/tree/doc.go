// Package tree shows what hangs below a Flux object: from its inventory to
// nested Kustomizations and HelmReleases and on, by owner references, down to
// the pods, each with how ready it is. Build collects and prints nothing;
// Text, Wide, JSON and YAML print what was collected.
package tree
