package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// configMedia is the configuration media type by which source-controller recognizes Flux artifacts.
const configMedia = "application/vnd.cncf.flux.config.v1+json"

// The annotations that describe the origin of an artifact.
const (
	SourceAnnotation   = "org.opencontainers.image.source"
	RevisionAnnotation = "org.opencontainers.image.revision"
	CreatedAnnotation  = "org.opencontainers.image.created"
)

// Push pushes an archive of files as an artifact. The same archive, annotations and time result in
// the same digest.
func Push(ctx context.Context, address string, archive []byte, annotations map[string]string, created time.Time, access Access) (Artifact, error) {
	return push(ctx, address, archive, media{configMedia, contentMedia}, annotations, created, access)
}

// PushChart pushes a packed chart as Helm does.
func PushChart(ctx context.Context, address string, packed []byte, created time.Time, access Access) (Artifact, error) {
	return push(ctx, address, packed, media{chartConfigMedia, chartMedia}, nil, created, access)
}

// The media types by which Helm and source-controller recognize charts.
const (
	chartConfigMedia = "application/vnd.cncf.helm.config.v1+json"
	chartMedia       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// media holds the media types of an artifact.
type media struct{ config, layer types.MediaType }

func push(ctx context.Context, address string, archive []byte, as media, annotations map[string]string, created time.Time, access Access) (Artifact, error) {
	reference, options, err := access.reach(ctx, address)
	if err != nil {
		return Artifact{}, err
	}
	image, err := assemble(archive, as, annotations, created)
	if err != nil {
		return Artifact{}, fmt.Errorf("building the artifact: %w", err)
	}
	if err := write(reference, image, options, access.Progress); err != nil {
		return Artifact{}, fmt.Errorf("pushing %s: %w", address, err)
	}
	pushed, err := describe(reference, image)
	if err != nil {
		return Artifact{}, fmt.Errorf("building the artifact: %w", err)
	}
	return pushed, nil
}

// write pushes an image and reports the progress.
func write(reference name.Reference, image v1.Image, options []remote.Option, progress func(done, total int64)) error {
	if progress == nil {
		return remote.Write(reference, image, options...)
	}
	updates, written := make(chan v1.Update, atOnce), make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for {
			select {
			case update, open := <-updates:
				if !open {
					return
				}
				progress(update.Complete, update.Total)
			case <-written: // the library does not close the channel after every error
				return
			}
		}
	})
	err := remote.Write(reference, image, append(options, remote.WithProgress(updates))...)
	close(written)
	reporting.Wait()
	return err
}

func assemble(archive []byte, as media, annotations map[string]string, created time.Time) (v1.Image, error) {
	created = created.UTC().Truncate(time.Second)
	notes := map[string]string{CreatedAnnotation: created.Format(time.RFC3339)}
	maps.Copy(notes, annotations)
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithMediaType(as.layer),
	)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), as.config)
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: created}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, notes).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotating the artifact did not return an image")
	}
	return mutate.Append(annotated, mutate.Addendum{Layer: layer})
}

// Tag adds tags to an artifact. It validates the tag names and fetches the artifact before it sets the first tag.
// Even if it returns an error, it returns the tags that were set, because the registry may reject only some of them.
func Tag(ctx context.Context, address string, tags []string, access Access) ([]Artifact, error) {
	reference, options, err := access.reach(ctx, address)
	if err != nil {
		return nil, err
	}
	var wanted []name.Tag
	for _, tag := range tags {
		w, err := name.NewTag(reference.Context().Name()+":"+tag, access.strictness()...)
		if err != nil || w.TagStr() != tag || w.Context() != reference.Context() {
			return nil, fmt.Errorf("invalid tag %q: must have at most 128 letters, digits, '_', '.' and '-', and not begin with '.' or '-'", tag)
		}
		wanted = append(wanted, w)
	}
	found, err := remote.Get(reference, options...)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", address, err)
	}
	var tagged []Artifact
	var failed error
	for _, w := range wanted {
		if err := remote.Tag(w, found, options...); err != nil {
			failed = errors.Join(failed, fmt.Errorf("tagging %s as %s: %w", address, w.TagStr(), err))
			continue
		}
		tagged = append(tagged, Artifact{Repository: w.Context().Name(), Tag: w.TagStr(), Digest: found.Digest.String()})
	}
	return tagged, failed
}
