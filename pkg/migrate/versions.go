// Package migrate updates Flux objects on a cluster, and manifests in files, to the current API
// versions.
package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/fluxkit/flux/pkg/controllers"
)

// since maps the versions of a kind to the minor release of Flux 2 that introduced them. Versions
// that are not listed were introduced in 2.0.
var since = map[string]map[string]int{
	"OCIRepository":         {"v1": 6},
	"Bucket":                {"v1": 4},
	"HelmRepository":        {"v1": 3},
	"HelmChart":             {"v1": 3},
	"ExternalArtifact":      {"v1": 7},
	"ArtifactGenerator":     {"v1beta1": 7},
	"HelmRelease":           {"v2": 3, "v2beta2": 2},
	"Provider":              {"v1": 10, "v1beta3": 2},
	"Alert":                 {"v1": 10, "v1beta3": 2},
	"ImageRepository":       {"v1": 7},
	"ImagePolicy":           {"v1": 7},
	"ImageUpdateAutomation": {"v1": 7, "v1beta2": 3},
}

// Release is a minor version of Flux 2.
type Release int

// Newest returns the newest embedded release.
func Newest() Release { return Release(minor(controllers.Distributions[0].Version)) }

// ParseRelease parses a version such as 2.6 or v2.6.1. For "" it returns the release that flux
// installs by default.
func ParseRelease(text string) (Release, error) {
	if text == "" {
		text = controllers.DefaultVersion
	}
	newest := int(Newest())
	asked := minor(strings.TrimPrefix(text, "v"))
	if asked < 0 || asked > newest {
		return 0, fmt.Errorf("unknown version %q: must be one of 2.0 to 2.%d", text, newest)
	}
	return Release(asked), nil
}

// minor returns the minor version of 2.x or 2.x.y, or -1 for other text.
func minor(text string) int {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "2" {
		return -1
	}
	for _, part := range parts {
		if n, err := strconv.Atoi(part); err != nil || n < 0 {
			return -1
		}
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}
	return n
}

// Target returns the newest version of a kind in a release, if it is newer than the given one.
func (r Release) Target(group, kind, from string) (string, bool) {
	k, ok := controllers.KindOf(group, kind)
	if !ok {
		return "", false
	}
	for _, v := range slices.Concat([]string{k.Version}, k.Older) {
		if since[k.Kind][v] <= int(r) {
			return v, version.CompareKubeAwareVersionStrings(v, from) > 0
		}
	}
	return "", false
}

// Introduced reports whether the release is the first that serves a kind at an API version.
func (r Release) Introduced(kind, apiVersion string) bool {
	_, v, _ := strings.Cut(apiVersion, "/")
	return since[kind][v] == int(r)
}

func (r Release) String() string { return fmt.Sprintf("2.%d", int(r)) }

// outdated reports whether a version of a group is older than the versions of all its kinds.
func (r Release) outdated(group, from string) bool {
	found := false
	for _, k := range controllers.Kinds {
		if k.Group != group {
			continue
		}
		if _, older := r.Target(group, k.Kind, from); !older {
			return false
		}
		found = true
	}
	return found
}
