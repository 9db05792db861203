package controllers

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DefaultVersion is the Flux version that is installed by default, without a leading "v". The
// command-line tool has its own version.
const DefaultVersion = "2.10.0"

// Distribution describes a Flux version with embedded manifests, and its differences from other
// versions. The module tools/distributions/VERSION pins the API modules from which its CRDs are
// generated.
type Distribution struct {
	// Version is the Flux version without a leading "v".
	Version string
	// Kubernetes lists the oldest supported patch version of each minor version
	// of Kubernetes, in ascending order. Later minor versions are supported as
	// well.
	Kubernetes []string
	// Tags maps the controllers to their image tags.
	Tags map[string]string
	// OpenWebhooks allows ingress to all ports of notification-controller, instead of only to the
	// port of Receivers.
	OpenWebhooks bool
	// TokenRequests allows the controllers to create tokens for ServiceAccounts.
	TokenRequests bool
	// Probed lists the controllers that report on the port for probes whether they are the leader.
	// In older versions, only the file server of the leader listens.
	Probed []string
}

// Distributions lists the embedded distributions, newest first.
var Distributions = []Distribution{
	{
		Version:    "2.10.0",
		Kubernetes: []string{"1.35.2", "1.36.1", "1.37.0"},
		Tags: map[string]string{
			"source-controller":           "v1.10.1",
			"kustomize-controller":        "v1.10.1",
			"helm-controller":             "v1.7.1",
			"notification-controller":     "v1.10.0",
			"image-reflector-controller":  "v1.3.0",
			"image-automation-controller": "v1.3.0",
			"source-watcher":              "v2.3.1",
		},
		Probed: []string{"source-controller"},
	},
	{
		Version:    "2.9.6",
		Kubernetes: []string{"1.33.0"},
		Tags: map[string]string{
			"source-controller":           "v1.9.6",
			"kustomize-controller":        "v1.9.6",
			"helm-controller":             "v1.6.5",
			"notification-controller":     "v1.9.4",
			"image-reflector-controller":  "v1.2.5",
			"image-automation-controller": "v1.2.5",
			"source-watcher":              "v2.2.4",
		},
		TokenRequests: true,
	},
	{
		Version:    "2.8.8",
		Kubernetes: []string{"1.33.0"},
		Tags: map[string]string{
			"source-controller":           "v1.8.5",
			"kustomize-controller":        "v1.8.5",
			"helm-controller":             "v1.5.5",
			"notification-controller":     "v1.8.4",
			"image-reflector-controller":  "v1.1.2",
			"image-automation-controller": "v1.1.4",
			"source-watcher":              "v2.1.1",
		},
		OpenWebhooks: true, TokenRequests: true,
	},
}

// DefaultDistribution returns the distribution that is installed without --version.
func DefaultDistribution() Distribution {
	d, _ := FindDistribution(DefaultVersion)
	return d
}

// FindDistribution returns the embedded distribution of a version such as 2.9.6, v2.9.6 or 2.9. A
// minor version such as 2.9 selects its embedded patch version. An empty version selects the
// default.
func FindDistribution(version string) (Distribution, bool) {
	if version == "" {
		version = DefaultVersion
	}
	version = strings.TrimPrefix(version, "v")
	i := slices.IndexFunc(Distributions, func(d Distribution) bool {
		return d.Version == version || d.Minor() == version
	})
	if i < 0 {
		return Distribution{}, false
	}
	return Distributions[i], true
}

// SameMinor returns the embedded distribution with the same minor version as a version such as
// v2.9.1.
func SameMinor(version string) (Distribution, bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return Distribution{}, false
	}
	return FindDistribution(parts[0] + "." + parts[1])
}

// Select returns the newest embedded distribution for a version or a range of versions, such as 2.9.1, v2.9 or 2.x: one of the
// same minor version as an allowed version. single reports whether all allowed versions have that minor version.
func Select(versions string) (d Distribution, single, ok bool) {
	if _, err := semver.NewVersion(versions); err == nil { // it may be a pre-release
		if d, ok := SameMinor(versions); ok {
			return d, true, true
		}
	}
	allowed, err := semver.NewConstraint(versions)
	if err != nil {
		return Distribution{}, false, false
	}
	minors := 0
	for _, embedded := range Distributions {
		version, err := semver.NewVersion(embedded.Version)
		if err != nil || !allowsMinor(allowed, version) {
			continue
		}
		if minors++; minors == 1 {
			next := semver.New(version.Major(), version.Minor()+1, 0, "", "")
			d, ok, single = embedded, true, !allowed.Check(next)
		}
	}
	return d, single && minors == 1, ok
}

// maxPatch is the maximum patch version that is checked.
const maxPatch = 30

// allowsMinor reports whether a range allows a patch version of the same minor version.
func allowsMinor(allowed *semver.Constraints, version *semver.Version) bool {
	for patch := range uint64(maxPatch) {
		if allowed.Check(semver.New(version.Major(), version.Minor(), patch, "", "")) {
			return true
		}
	}
	return allowed.Check(version)
}

// Minor returns the version without the patch version, such as 2.9.
func (d Distribution) Minor() string { return d.Version[:strings.LastIndexByte(d.Version, '.')] }

// EmbeddedVersions returns the versions of the embedded distributions.
func EmbeddedVersions() []string {
	versions := make([]string, len(Distributions))
	for i, d := range Distributions {
		versions[i] = d.Version
	}
	return versions
}

// StrictSubstitutionGate is the feature gate of kustomize-controller for StrictSubstitution.
const StrictSubstitutionGate = "StrictPostBuildSubstitutions"

// StrictSubstitution reports whether kustomize-controller fails if a variable of spec.postBuild has neither a value nor a default.
// The version of the controller and the feature gate are those of its Deployment. Without it, the FluxInstance sets the feature
// gate, and the version unless a Flux version is given. known is false if nothing determines the version, such as an image with
// only a digest. All arguments may be empty.
func StrictSubstitution(deployment, instance *unstructured.Unstructured, version string) (strict, known bool) {
	const name = "kustomize-controller"
	if deployment != nil {
		containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			if image := (Path{"image"}).String(fields); strings.Contains(image, name) {
				return strictly(ImageTag(image), container)
			}
		}
	}
	var settings any
	if instance != nil {
		settings = instance.Object
	}
	if instance != nil && version == "" {
		selected, _, _ := Select(Path{"spec.distribution.version"}.String(instance.Object))
		version = selected.Version
	}
	tag := ""
	if version != "" {
		d, _ := FindDistribution(version) // an unknown version has no tags
		tag = d.Tags[name]
	}
	return strictly(tag, settings)
}

// strictly reports whether the version with an image tag is strict, unless the settings contain the feature gate. The default
// changed in v1.9, see internal/features of kustomize-controller.
func strictly(tag string, settings any) (strict, known bool) {
	encoded, _ := json.Marshal(settings) // decoded from JSON
	if _, value, set := strings.Cut(string(encoded), StrictSubstitutionGate+"="); set {
		value = value[:strings.IndexFunc(value+" ", func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })]
		strict, err := strconv.ParseBool(value) // as controllers parse it
		return strict, err == nil
	}
	v, err := semver.NewVersion(tag)
	return err == nil && (v.Major() > 1 || v.Minor() >= 9), err == nil
}
