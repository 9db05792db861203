package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// build measures builds of directories of ConfigMaps without a cluster. The target
// applies to the middle size; the larger ones show how the cost grows.
func (b *bench) build(ctx context.Context) (err error) {
	home, err := os.MkdirTemp("", "flux-bench-build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	ks := filepath.Join(home, "ks.yaml")
	const kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec: {path: ./}\n"
	if err := os.WriteFile(ks, []byte(kustomization), 0o600); err != nil {
		return err
	}
	for _, size := range []int{30, 300, 3000} {
		folder := filepath.Join(home, fmt.Sprint(size))
		if err := configMaps(folder, size); err != nil {
			return err
		}
		most := target{}
		if size == 300 {
			most.wall = 0.6
		}
		few := *b
		if size == 3000 {
			few.runs = min(b.runs, 3) // kubectl takes several seconds at this size
		}
		ours := []string{"flux", "build", "kustomization", "app", "--dry-run", "--kustomization-file", ks, "--path", folder}
		if err := few.pair(ctx, fmt.Sprintf("Build of %d objects", size), most, ours, []string{"kubectl", "kustomize", folder}); err != nil {
			return err
		}
	}
	return nil
}

// configMaps writes a directory with a kustomization that lists its files.
func configMaps(folder string, size int) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	var list strings.Builder
	list.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: apps\nresources:\n")
	for i := range size {
		name := fmt.Sprintf("config-%04d", i)
		fmt.Fprintf(&list, "- %s.yaml\n", name)
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels:\n    app: bench\ndata:\n  number: \"%d\"\n  text: %q\n",
			name, i, strings.Repeat("some configuration ", 20))
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(list.String()), 0o600)
}
