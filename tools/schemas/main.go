// Command schemas writes the schemas of Kubernetes kinds, as published by the API server of the
// sandbox, to the file that flux-helper embeds for "flux validate".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fluxkit/flux/test/support/testcluster"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	cluster, err := testcluster.Up(ctx, "none")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	version, content, err := generate(ctx, cluster.Client)
	if err != nil {
		return err
	}
	const readable = 0o644
	return os.WriteFile(filepath.Join(testcluster.Root(), folder, version+".json.gz"), content, readable)
}

// folder is the directory of the generated files.
const folder = "pkg/validate/schema/kubernetes"
