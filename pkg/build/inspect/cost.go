// Package inspect decides which files kustomize may read in this process and on the network.
package inspect

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fluxkit/flux/internal/budget"
)

// Limits of what kustomize may read in this process. Its output and its memory grow with the length
// of the kustomizations times the number of documents.
const (
	cheapBytes     = 4 << 20
	cheapDocuments = 1000
	cheapProduct   = 16 << 20
)

// ErrCostly is returned if a build is too expensive for this process and must run in flux-helper.
var ErrCostly = errors.New("the build must run in flux-helper")

// Cost counts what kustomize has read. A file that is read again counts again.
type Cost struct{ bytes, kustomizations, documents int64 }

// linear lists the fields of a kustomization whose output is bounded by their own length for every
// document. It excludes replacements and plugins, each entry of which can double what it copies,
// and deprecated fields, for which kustomize writes warnings to the stderr of its process.
var linear = []string{
	"apiVersion", "kind", "metadata", "resources", "components", "namespace", "namePrefix", "nameSuffix",
	"images", "replicas", "labels", "commonAnnotations", "patches",
	"configMapGenerator", "secretGenerator", "generatorOptions", "buildMetadata", "sortOptions",
}

// Read counts a file and returns ErrCostly if a limit is exceeded.
func (c *Cost) Read(name string, data []byte) error {
	c.bytes += int64(len(data))
	if IsKustomizationFile(name) {
		c.kustomizations += int64(len(data))
		if !simpleKustomization(data) {
			return ErrCostly
		}
	} else {
		c.documents += int64(bytes.Count(data, []byte("\n---"))) + 1
		if copies(string(data)) {
			return ErrCostly
		}
	}
	if c.bytes > cheapBytes || c.documents > cheapDocuments || c.kustomizations*c.documents > cheapProduct {
		return ErrCostly
	}
	return nil
}

func simpleKustomization(data []byte) bool {
	var k map[string]any
	if budget.Unmarshal("", data, &k) != nil {
		return false
	}
	for field := range k {
		if !slices.Contains(linear, field) {
			return false
		}
	}
	var listed struct {
		Resources  []string
		Components []string
		Patches    []struct{ Patch string }
	}
	if budget.Unmarshal("", data, &listed) != nil {
		return false
	}
	for _, entry := range append(listed.Resources, listed.Components...) {
		if _, remote := remoteHost(entry); remote {
			return false
		}
	}
	return !slices.ContainsFunc(listed.Patches, func(p struct{ Patch string }) bool { return copies(p.Patch) })
}

// copies reports whether a text may be a JSON patch with copy operations, each of which can double
// the document. It returns true if that cannot be determined.
func copies(text string) bool {
	for rest := text; ; {
		line, more, found := strings.Cut(rest, "\n")
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || line == "---" || strings.HasPrefix(line, "%"):
		case strings.HasPrefix(line, "-") || strings.HasPrefix(line, "["):
			var operations []struct{ Op string }
			if budget.Unmarshal("", []byte(text), &operations) != nil {
				return true
			}
			return slices.ContainsFunc(operations, func(o struct{ Op string }) bool {
				return !slices.Contains([]string{"add", "remove", "replace", "test"}, o.Op)
			})
		default:
			return strings.ContainsAny(line[:1], "&!?*") || strings.HasPrefix(line, "---")
		}
		if rest = more; !found {
			return false
		}
	}
}

// IsKustomizationFile reports whether kustomize reads a file as a kustomization.
func IsKustomizationFile(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}
