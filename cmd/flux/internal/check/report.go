package check

import (
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
)

// checkStatus is the result of a check.
type checkStatus string

const (
	checkOK      checkStatus = "ok"
	checkWarning checkStatus = "warning"
	checkFailed  checkStatus = "failed"
)

// checkReport is the report in JSON and YAML.
type checkReport struct {
	Status       checkStatus         `json:"status"`
	Distribution *distributionReport `json:"distribution,omitempty"`
	Checks       []result            `json:"checks"`
	Controllers  []controllerResult  `json:"controllers"`
	CRDs         []result            `json:"crds"`
}

// distributionReport describes the installed distribution.
type distributionReport struct {
	Version string `json:"version,omitempty"`
	// Newer is the newest version that can be installed on the cluster, if it is
	// newer than Version.
	Newer        string `json:"newer,omitempty"`
	ManagedBy    string `json:"managedBy,omitempty"`
	Bootstrapped bool   `json:"bootstrapped"`
}

type result struct {
	Name    string      `json:"name"`
	Status  checkStatus `json:"status"`
	Version string      `json:"version,omitempty"`
	Message string      `json:"message,omitempty"`
}

type controllerResult struct {
	result
	Namespace string   `json:"namespace"`
	Images    []string `json:"images"`
}

// newReport returns a report with empty lists instead of null.
func newReport() checkReport {
	return checkReport{Status: checkOK, Checks: []result{}, Controllers: []controllerResult{}, CRDs: []result{}}
}

// count returns the numbers of warnings and failures.
func (r checkReport) count() (warnings, failures int) {
	add := func(s checkStatus) {
		warnings += report.OneIf(s == checkWarning)
		failures += report.OneIf(s == checkFailed)
	}
	for _, check := range r.Checks {
		add(check.Status)
	}
	for _, controller := range r.Controllers {
		add(controller.Status)
	}
	for _, crd := range r.CRDs {
		add(crd.Status)
	}
	return warnings, failures
}

// check adds a check to the report and prints its line.
func (c *checker) check(r result, format string, args ...any) {
	c.report.Checks = append(c.report.Checks, r)
	c.say(r.Status, format, args...)
}

// crd adds a CustomResourceDefinition to the report and prints its line.
func (c *checker) crd(r result, format string, args ...any) {
	c.report.CRDs = append(c.report.CRDs, r)
	c.say(r.Status, format, args...)
}

func (c *checker) say(status checkStatus, format string, args ...any) {
	switch status {
	case checkOK:
		c.app.UI.Success(format, args...)
	case checkWarning:
		c.app.UI.Warning(format, args...)
	default:
		c.app.UI.Failure(format, args...)
	}
}
