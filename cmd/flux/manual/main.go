// Command manual writes the manual pages of flux into a directory, for releases:
//
//	go run ./cmd/flux/manual DIRECTORY VERSION DATE
//
// DATE is the date of the pages in RFC 3339, so that builds are reproducible.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/docgen"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: go run ./cmd/flux/manual DIRECTORY VERSION DATE")
	}
	date, err := time.Parse(time.RFC3339, args[2])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	// Defaults do not depend on the environment.
	flux := root.NewRoot(app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now), nil)
	docgen.Timeless(flux)
	return doc.GenManTree(flux, &doc.GenManHeader{Section: "1", Source: "flux " + args[1], Manual: "flux", Date: &date}, args[0])
}
