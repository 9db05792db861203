package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// tagAnnotation is the annotation that contains the tag of a manifest in an OCI layout.
const tagAnnotation = "org.opencontainers.image.ref.name"

// PushLayout pushes the images in an OCI layout to a repository, under their tags and digests.
func PushLayout(ctx context.Context, repository, folder string, access Access) error {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return fmt.Errorf("reading the OCI layout %s: %w", folder, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the OCI layout %s: %w", folder, err)
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return fmt.Errorf("reading %s of the OCI layout %s: %w", m.Digest, folder, err)
		}
		address := repository + "@" + m.Digest.String()
		if tag := m.Annotations[tagAnnotation]; tag != "" {
			address = repository + ":" + tag
		}
		reference, options, err := access.reach(ctx, address)
		if err != nil {
			return err
		}
		if err := remote.Write(reference, image, options...); err != nil {
			return fmt.Errorf("pushing %s: %w", address, err)
		}
	}
	return nil
}

// SelectLayout returns the stored layer of the selected artifact in an OCI layout after verifying the digests.
func SelectLayout(files fs.FS, wanted Wanted) ([]byte, error) {
	text, err := fs.ReadFile(files, "index.json")
	if err != nil {
		return nil, fmt.Errorf("reading the OCI layout: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the OCI layout: %w", err)
	}
	digests := map[string]v1.Hash{} // keys are tags and digests
	var tags []string
	for _, m := range index.Manifests {
		tag := m.Annotations[tagAnnotation]
		digests[tag], digests[m.Digest.String()], tags = m.Digest, m.Digest, append(tags, tag)
	}
	name := cmp.Or(wanted.Digest, wanted.Tag, name.DefaultTag)
	if wanted.Digest == "" && wanted.SemVer != "" {
		if name, err = wanted.newest(tags); err != nil {
			return nil, err
		}
	}
	digest, ok := digests[name]
	if !ok {
		return nil, fmt.Errorf("the OCI layout has no artifact %s", name)
	}
	if text, err = blobIn(files, digest); err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", name, err)
	}
	for _, layer := range manifest.Layers {
		if wanted.MediaType == "" || string(layer.MediaType) == wanted.MediaType {
			return blobIn(files, layer.Digest)
		}
	}
	return nil, fmt.Errorf("%s has no layer with the media type %q", name, wanted.MediaType)
}

// blobIn reads a blob of an OCI layout and verifies its digest.
func blobIn(files fs.FS, digest v1.Hash) ([]byte, error) {
	content, err := fs.ReadFile(files, LayoutBlob(digest.String()))
	if err != nil {
		return nil, fmt.Errorf("reading the OCI layout: %w", err)
	}
	got, _, err := v1.SHA256(bytes.NewReader(content))
	if err == nil && got != digest {
		err = fmt.Errorf("%s in the OCI layout has the digest %s", digest, got)
	}
	return content, err
}

// LayoutFile is the name of the file that marks a directory as an OCI layout (OCI image specification).
const LayoutFile = "oci-layout"

// LayoutVersion is the content of LayoutFile.
const LayoutVersion = `{"imageLayoutVersion":"1.0.0"}`

// LayoutBlob returns the path of a blob in an OCI layout.
func LayoutBlob(digest string) string { return "blobs/" + strings.ReplaceAll(digest, ":", "/") }

// LayoutIndex returns the content of index.json for an OCI layout with artifacts, whose manifests it reads.
func LayoutIndex(artifacts []Artifact, manifest func(digest string) ([]byte, error)) ([]byte, error) {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, a := range artifacts {
		content, err := manifest(a.Digest)
		if err != nil {
			return nil, err
		}
		digest, size, err := v1.SHA256(bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		var media struct{ MediaType types.MediaType }
		if err := json.Unmarshal(content, &media); err != nil {
			return nil, err
		}
		d := v1.Descriptor{MediaType: media.MediaType, Size: size, Digest: digest}
		if d.MediaType == "" {
			d.MediaType = types.OCIManifestSchema1
		}
		if a.Tag != "" {
			d.Annotations = map[string]string{tagAnnotation: a.Tag}
		}
		index.Manifests = append(index.Manifests, d)
	}
	return json.MarshalIndent(index, "", "  ")
}

// Download verifies the blobs of the selected artifact (layers, configuration and manifest) and
// passes them to put, except those for which have returns true. content is the digest of the layer
// that an OCIRepository selects, and digests lists the digests of all blobs, the manifest first.
func Download(ctx context.Context, address string, wanted Wanted, access Access, have func(digest string) bool, put func(digest string, content []byte) error) (found Artifact, content string, digests []string, err error) {
	found, image, err := wanted.image(ctx, address, access)
	if err != nil {
		return found, "", nil, err
	}
	if wanted.Digest != "" && found.Digest != wanted.Digest {
		return found, "", nil, errors.New("the digest refers to an image index: set the digest of one of its images")
	}
	blobs, err := blobsOf(image)
	if err != nil {
		return found, "", nil, fmt.Errorf("reading the manifest of %s: %w", found.name(), err)
	}
	selected, err := layerOf(image, wanted.MediaType, wanted.MediaType == "")
	if err != nil {
		return found, "", nil, fmt.Errorf("reading the manifest of %s: %w", found.name(), err)
	}
	layer, err := selected.Digest()
	if err != nil {
		return found, "", nil, err
	}
	digests = []string{found.Digest}
	for _, b := range blobs {
		if slices.Contains(digests, b.digest) {
			continue
		}
		digests = append(digests, b.digest)
		if have(b.digest) {
			continue
		}
		text, err := b.read()
		if err == nil {
			err = put(b.digest, text)
		}
		if err != nil {
			return found, "", nil, fmt.Errorf("fetching %s of %s: %w", b.digest, found.name(), err)
		}
	}
	if !have(found.Digest) {
		manifest, err := image.RawManifest()
		if err == nil {
			err = put(found.Digest, manifest)
		}
		if err != nil {
			return found, "", nil, err
		}
	}
	return found, layer.String(), digests, nil
}

// blob is the configuration or a layer of an image.
type blob struct {
	digest string
	read   func() ([]byte, error)
}

func blobsOf(image v1.Image) ([]blob, error) {
	config, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	blobs := []blob{{config.String(), image.RawConfigFile}}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, blob{digest.String(), func() ([]byte, error) { return compressed(layer, nil) }})
	}
	return blobs, nil
}
