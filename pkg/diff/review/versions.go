package review

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
)

// majorImages finds containers whose image tag changes to another major version.
func majorImages(c change) []string {
	var found []string
	for _, image := range c.Images {
		before, old := splitImage(image.Before)
		after, young := splitImage(image.After)
		if before == after && majorOf(old) != majorOf(young) && majorOf(old) >= 0 && majorOf(young) >= 0 {
			found = append(found, fmt.Sprintf("%s %s → %s", after, old, young))
		}
	}
	return found
}

// splitImage splits an image into its repository and its tag.
func splitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") { // the colon of a port
		return image, ""
	}
	return image[:i], image[i+1:]
}

// calendar is the lowest number that is treated as a year or a date, as in 2024.1 or 20240119,
// instead of a major version.
const calendar = 1000

// majorOf returns the major version of a tag, or -1 if it has none.
func majorOf(tag string) int64 {
	v, err := semver.NewVersion(tag)
	if err != nil || v.Major() >= calendar {
		return -1
	}
	return int64(v.Major()) // below calendar
}

// versioned holds the fields with the name and the version of a chart or an artifact, by kind.
var versioned = map[string]struct{ name, version controllers.Path }{
	controllers.HelmRelease:   {controllers.Path{"spec.chart.spec.chart"}, controllers.Path{"spec.chart.spec.version"}},
	controllers.HelmChart:     {controllers.Path{"spec.chart"}, controllers.Path{"spec.version"}},
	controllers.OCIRepository: {controllers.Path{"spec.url"}, controllers.Path{"spec.ref.semver", "spec.ref.tag"}},
}

// majorCharts finds a chart or an artifact whose version or version range changes to another major
// version.
func majorCharts(c change) []string {
	fields, known := versioned[c.Object.Kind]
	if _, ours := controllers.KindOf(c.Object.Group, c.Object.Kind); !known || !ours || c.before == nil || c.after == nil {
		return nil
	}
	old, young := fields.version.String(c.before), fields.version.String(c.after)
	before, after := firstMajor(old), firstMajor(young)
	name := fields.name.String(c.after)
	if before == "" || after == "" || before == after || fields.name.String(c.before) != name {
		return nil
	}
	return []string{fmt.Sprintf("%s %s → %s", name, old, young)}
}

// leadingMajor matches a version or a range that starts with a major version, such as 1.2.3, v2,
// ^1.0 or ">=1.2.0 <2.0.0".
var leadingMajor = lazy.Regexp(`^[\^~>=v\s]*(\d{1,3})(?:[.\-\s]|$)`)

// firstMajor returns the major version at the start of a range, or "". The start of a range such as
// "<3" does not limit its major version from below.
func firstMajor(version string) string {
	m := leadingMajor().FindStringSubmatch(version)
	if m == nil {
		return ""
	}
	return m[1]
}
