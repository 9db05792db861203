// Images builds the container images of a release from its archives, without a container engine, and
// pushes them.
//
// Usage:
//
//	go run ./tools/images build LAYOUT COMMIT DATE ARCHIVE…
//	go run ./tools/images push LAYOUT REFERENCE…
//
// build writes LAYOUT, a directory in OCI image layout with an index of one image for each ARCHIVE, whose name
// is flux_VERSION_linux_ARCH.tar.gz. The output is reproducible. push pushes the index to registries, with the
// credentials in the Docker configuration, and prints the references by digest.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const usage = "usage: images build LAYOUT COMMIT DATE ARCHIVE…, or images push LAYOUT REFERENCE…"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// run runs a command line.
func run(ctx context.Context, out io.Writer, words []string) error {
	switch {
	case len(words) >= 5 && words[0] == "build":
		date, err := time.Parse(time.RFC3339, words[3])
		if err != nil {
			return fmt.Errorf("parsing the commit date: %w", err)
		}
		return build(words[1], release{commit: words[2], date: date.UTC()}, words[4:])
	case len(words) >= 3 && words[0] == "push":
		return push(ctx, out, words[1], words[2:])
	}
	return errors.New(usage)
}

// build writes the images of archives to a new OCI layout.
func build(folder string, r release, archives []string) error {
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists: remove it first", folder)
	}
	index, err := r.index(archives)
	if err != nil {
		return err
	}
	_, err = layout.Write(folder, index)
	return err
}

// push pushes the index of a layout to references and prints the references by digest.
func push(ctx context.Context, out io.Writer, folder string, references []string) error {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	for _, text := range references {
		reference, err := name.ParseReference(text, name.StrictValidation)
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("pushing %s: %w", text, err)
		}
		if _, err := fmt.Fprintln(out, reference.Context().Digest(digest.String())); err != nil {
			return err
		}
	}
	return nil
}
