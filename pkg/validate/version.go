package validate

import (
	"github.com/Masterminds/semver/v3"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// selectVersion uses the CustomResourceDefinitions of the version of Flux that a FluxInstance installs, unless the user has
// selected one. A range of several minor versions selects the newest, which the cluster need not have yet.
func (c *cluster) selectVersion() error {
	instance := repository.Instance(c.graph)
	if !c.Assumed || c.CRDsOf == nil || instance == nil {
		return nil
	}
	selected := text(instance, "spec", "distribution", "version")
	constraint, err := semver.NewConstraint(selected)
	if err != nil {
		return nil // the API server or flux-operator rejects it
	}
	var newest *semver.Version
	minors := map[uint64]bool{}
	for _, name := range controllers.EmbeddedVersions() {
		version, err := semver.NewVersion(name)
		if err != nil || !constraint.Check(version) && !sameMinor(constraint, version) {
			continue
		}
		if minors[version.Minor()] = true; newest == nil || version.GreaterThan(newest) {
			newest = version
		}
	}
	if newest == nil {
		return nil
	}
	if c.CRDs, err = c.CRDsOf(newest.String()); err != nil {
		return err
	}
	next := semver.New(newest.Major(), newest.Minor()+1, 0, "", "")
	c.FluxVersion, c.Assumed = newest.String(), len(minors) > 1 || constraint.Check(next)
	return nil
}

// sameMinor reports whether a constraint allows another patch version, which has the same CustomResourceDefinitions.
func sameMinor(constraint *semver.Constraints, version *semver.Version) bool {
	for patch := range uint64(30) {
		if constraint.Check(semver.New(version.Major(), version.Minor(), patch, "", "")) {
			return true
		}
	}
	return false
}
