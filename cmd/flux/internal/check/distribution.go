package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// flux returns the distribution whose prerequisites are checked: the embedded one with the minor
// version of the installed Flux, or else the default.
func (c *checker) flux() controllers.Distribution {
	if crd := c.find(kube.InstalledCRD); crd != nil {
		if d, known := controllers.SameMinor(kube.Label(crd, kube.VersionLabel)); known {
			return d
		}
	}
	return controllers.DefaultDistribution()
}

// distribution reports the installed version from the labels of a CRD that is
// part of every installation.
func (c *checker) distribution() {
	r := result{Name: "distribution", Status: checkOK}
	crd := c.find(kube.InstalledCRD)
	if crd == nil {
		r.Status, r.Message = checkFailed, "no CustomResourceDefinition "+kube.InstalledCRD
		c.check(r, "Flux is not installed, or the installation is incomplete: CustomResourceDefinition %s not found", kube.InstalledCRD)
		c.app.UI.Line("  install it with 'flux install' or 'flux bootstrap'")
		return
	}
	manager, bootstrapped := kube.Label(crd, kube.ManagedByLabel), kube.Label(crd, kube.BootstrapLabel) != ""
	r.Version = kube.Label(crd, kube.VersionLabel)
	c.report.Distribution = &distributionReport{Version: r.Version, ManagedBy: manager, Bootstrapped: bootstrapped}
	if r.Version != "" {
		c.check(r, "distribution: flux-%s", r.Version)
	} else {
		r.Status, r.Message = checkWarning, fmt.Sprintf("%s has no label %s", kube.InstalledCRD, kube.VersionLabel)
		c.check(r, "unknown Flux distribution: %s", r.Message)
	}
	if manager != "" {
		c.app.UI.Success("managed by: %s", manager)
	}
	c.app.UI.Success("bootstrapped: %t", bootstrapped)
	c.upgrade()
}

// upgrade reports a newer version that flux can install and that the Kubernetes version supports.
func (c *checker) upgrade() {
	installed, err := version.ParseSemantic(c.report.Distribution.Version)
	if err != nil {
		return // reported as unknown
	}
	next := controllers.DefaultDistribution()
	constraint, supported, err := kube.Supports(c.server, next.Kubernetes)
	if err != nil || !older(installed, next) {
		return
	}
	if !supported {
		c.app.UI.Action("Flux %s requires Kubernetes %s", next.Version, constraint)
		var found bool
		if next, found = manifests.Newest(c.server); !found || !older(installed, next) {
			return
		}
	}
	c.report.Distribution.Newer = "v" + next.Version
	command := fmt.Sprintf("flux install --version=%s", next.Version)
	switch {
	case c.report.Distribution.Bootstrapped:
		command = fmt.Sprintf("flux bootstrap --version=%s", next.Version)
	case c.report.Distribution.ManagedBy != "" && c.report.Distribution.ManagedBy != "flux":
		c.app.UI.Action("outdated: upgrade to Flux %s with %s", next.Version, c.report.Distribution.ManagedBy)
		return
	}
	c.app.UI.Action("outdated: upgrade to Flux %s with '%s'", next.Version, command)
}

func older(installed *version.Version, d controllers.Distribution) bool {
	return installed.LessThan(version.MustParseSemantic(d.Version))
}
