// Package release downloads the manifests of Flux releases that are not embedded.
package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/web/download"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Address is the address of the Flux releases.
const Address = "https://github.com/fluxcd/flux2/releases"

const (
	// archive is the name of the release file with the manifests.
	archive = "manifests.tar.gz"
	// archiveMax is the maximum size of the archive.
	archiveMax = 8 << 20
	// checksumsMax is the maximum size of the file with the checksums.
	checksumsMax = 1 << 20
)

// Manifests contains the manifests of a release.
type Manifests struct {
	// Version is the version with a leading "v".
	Version string
	// Archive is the content of the release file manifests.tar.gz.
	Archive []byte
	// Unverified is true for an old release without a published checksum of the archive.
	Unverified bool
}

// Normalize returns a version with a leading "v", or an error if it is not a
// semantic version.
func Normalize(text string) (string, error) {
	v, err := version.ParseSemantic(text)
	if err != nil || v.String() != strings.TrimPrefix(text, "v") {
		return "", fmt.Errorf("invalid version %q: must be %s, a version such as v%s, or latest", text, minors(), controllers.DefaultVersion)
	}
	return "v" + v.String(), nil
}

// minors lists the embedded minor versions.
func minors() string {
	var names []string
	for _, d := range controllers.Distributions {
		names = append(names, d.Minor())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Latest returns the version of the latest release, to which the server redirects.
func Latest(ctx context.Context, agent string) (string, error) {
	latest, err := url.Parse(Address + "/latest")
	if err != nil {
		return "", err
	}
	target, err := download.New(agent).Redirect(ctx, latest)
	switch {
	case context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", network("latest", err)
	case path.Base(path.Dir(target.Path)) != "tag":
		return "", network("latest", fmt.Errorf("%s does not redirect to a release", latest))
	}
	return Normalize(path.Base(target.Path))
}

// Fetch downloads the manifests of a version and verifies their published checksum. The version must be normalized.
func Fetch(ctx context.Context, agent, version string) (*Manifests, error) {
	client := download.New(agent)
	folder := Address + "/download/" + version + "/"
	m := &Manifests{Version: version}
	var sums []byte
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		m.Archive, err = client.Read(gctx, folder+archive, archiveMax)
		if errors.Is(err, fs.ErrNotExist) {
			return hint.Errorf("see "+Address+" for the versions", "Flux release %s not found", version)
		}
		return err
	})
	g.Go(func() (err error) {
		sums, err = client.Read(gctx, folder+"flux_"+strings.TrimPrefix(version, "v")+"_checksums.txt", checksumsMax)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err := g.Wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, network(version, err)
	}
	want, published := download.Checksum(sums, archive)
	sum := sha256.Sum256(m.Archive)
	if got := hex.EncodeToString(sum[:]); published && got != want {
		return nil, fmt.Errorf("checksum of %s does not match: expected %s, got %s", folder+archive, want, got)
	}
	m.Unverified = !published
	return m, nil
}

// network adds the version and a hint to an error without a hint.
func network(version string, err error) error {
	var known *hint.Error
	if errors.As(err, &known) {
		return err
	}
	return hint.Errorf("check the network connection and HTTPS_PROXY, omit --version to install the embedded Flux, "+
		"or set --manifests to rendered manifests of that version", "downloading the manifests of Flux %s: %w", version, err)
}
