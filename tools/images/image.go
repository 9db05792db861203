package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the user ID and group ID of the programs, the same as nonroot in distroless images.
	user = 65532
	home = "home/nonroot"
	// programs is the directory of flux and its helper programs, which must be in the same directory.
	programs = "usr/local/bin"
)

// release contains the properties that all images share.
type release struct {
	version, commit string
	// date is the time of the commit instead of the build, so that images are reproducible.
	date time.Time
}

// archiveName matches the name of an archive: version, operating system and architecture.
var archiveName = regexp.MustCompile(`^flux_([^_]+)_(linux)_([a-z0-9]+)\.tar\.gz$`)

// index returns an index with one image for each archive.
func (r release) index(archives []string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, archive := range archives {
		found := archiveName.FindStringSubmatch(filepath.Base(archive))
		if found == nil {
			return nil, fmt.Errorf("%s: the name must be flux_VERSION_linux_ARCH.tar.gz", filepath.Base(archive))
		}
		if r.version = cmp.Or(r.version, found[1]); r.version != found[1] {
			return nil, fmt.Errorf("%s: another archive has version %s", filepath.Base(archive), r.version)
		}
		target := v1.Platform{OS: found[2], Architecture: found[3]}
		image, err := r.image(archive, target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &target}})
	}
	return mutate.Annotations(index, r.labels()).(v1.ImageIndex), nil
}

// image returns an image with the programs in an archive.
func (r release) image(archive string, target v1.Platform) (v1.Image, error) {
	system, err := r.systemFiles()
	if err != nil {
		return nil, err
	}
	installed, err := r.releaseFiles(archive)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, content := range []struct {
		files   files
		comment string
	}{{system, "user, certificate authorities and directories"}, {installed, "flux, flux-helper and flux-ui"}} {
		layer, err := tarball.LayerFromOpener(content.files.open, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "tools/images", Comment: content.comment},
		})
		if err != nil {
			return nil, err
		}
	}
	return r.configure(image, target)
}

// configure sets the platform, user and entrypoint of an image.
func (r release) configure(image v1.Image, target v1.Platform) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = target.OS, target.Architecture
	config.Created = v1.Time{Time: r.date}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/" + programs + "/flux"},
		WorkingDir: "/" + home,
		Env:        []string{"PATH=/" + programs, "HOME=/" + home},
		Labels:     r.labels(),
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, r.labels()).(v1.Image), nil
}

// labels returns the labels that describe an image to registries and scanners.
func (r release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "flux",
		"org.opencontainers.image.description": "Installs Flux on a Kubernetes cluster from a Git repository, and inspects and operates it",
		"org.opencontainers.image.source":      "https://github.com/fluxkit/flux",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.date.Format(time.RFC3339),
	}
}
