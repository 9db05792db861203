package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// definitions checks that the CRDs are served and that no object is stored in a
// version that is no longer served.
func (c *checker) definitions() {
	slices.SortFunc(c.crds, func(a, b controllers.Object) int { return strings.Compare(controllers.Name(a), controllers.Name(b)) })
	for _, crd := range c.crds {
		r := result{Name: controllers.Name(crd), Status: checkOK}
		stored := controllers.Path{"status.storedVersions"}.Strings(crd)
		if len(stored) > 0 {
			r.Version = stored[len(stored)-1]
		}
		if r.Message = crdProblem(crd, stored); r.Message != "" {
			r.Status = checkFailed
			c.crd(r, "%s: %s", r.Name, r.Message)
			continue
		}
		c.crd(r, "%s/%s", r.Name, r.Version)
	}
	for _, k := range c.missingKinds() {
		message := fmt.Sprintf("not found (required by %s): install it with 'flux install'", k.Controller)
		c.crd(result{Name: k.CRD(), Status: checkFailed, Message: message}, "%s: %s", k.CRD(), message)
	}
	if len(c.crds) == 0 {
		message := "no Flux CRDs found with the label " + kube.PartOfFlux
		c.check(result{Name: "crds", Status: checkFailed, Message: message}, "%s", message)
	}
}

// crdProblem returns the problem of a CRD, or "".
func crdProblem(crd controllers.Object, stored []string) string {
	if kube.Terminating(crd) {
		return "being deleted: finalizers on its objects may block the deletion"
	}
	for _, want := range []string{"Established", "NamesAccepted"} {
		if condition, found := controllers.FindCondition(crd, want); found && condition.Status != "True" {
			return fmt.Sprintf("not served: %s: %s", condition.Reason, condition.Message)
		}
	}
	if len(stored) == 0 {
		return "no stored version"
	}
	served := kube.ServedVersions(crd)
	for _, v := range stored {
		if !slices.Contains(served, v) {
			return fmt.Sprintf("objects may be stored as %s, which is no longer served: run 'flux migrate'", v)
		}
	}
	return ""
}

// missingKinds returns the kinds whose CRDs do not exist although the installed controllers
// require them. The required CRDs are only known for embedded distributions.
func (c *checker) missingKinds() []controllers.Kind {
	var missing []controllers.Kind
	for _, k := range controllers.Kinds {
		d := c.deployments[k.Controller]
		if d == nil {
			continue
		}
		if _, known := controllers.FindDistribution(d.Labels[kube.VersionLabel]); !known || d.Labels[kube.VersionLabel] == "" {
			continue
		}
		if c.find(k.CRD()) == nil {
			missing = append(missing, k)
		}
	}
	return missing
}
