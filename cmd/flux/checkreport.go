package main

// checkStatus is the result of a check.
type checkStatus string

const (
	checkOK      checkStatus = "ok"
	checkWarning checkStatus = "warning"
	checkFailed  checkStatus = "failed"
)

// checkupReport is what check prints for programs.
type checkupReport struct {
	Status       checkStatus         `json:"status"`
	Distribution *distributionReport `json:"distribution,omitempty"`
	Checks       []checkResult       `json:"checks"`
	Controllers  []controllerResult  `json:"controllers"`
	CRDs         []checkResult       `json:"crds"`
}

// distributionReport is what is installed.
type distributionReport struct {
	Version      string `json:"version,omitempty"`
	ManagedBy    string `json:"managedBy,omitempty"`
	Bootstrapped bool   `json:"bootstrapped"`
}

type checkResult struct {
	Name    string      `json:"name"`
	Status  checkStatus `json:"status"`
	Version string      `json:"version,omitempty"`
	Message string      `json:"message,omitempty"`
}

type controllerResult struct {
	checkResult
	Namespace string   `json:"namespace"`
	Images    []string `json:"images"`
}

// newCheckupReport returns a report in which empty lists are lists for programs, too.
func newCheckupReport() checkupReport {
	return checkupReport{Status: checkOK, Checks: []checkResult{}, Controllers: []controllerResult{}, CRDs: []checkResult{}}
}

// count returns how many checks have warned and how many have failed.
func (r checkupReport) count() (warnings, failures int) {
	add := func(s checkStatus) {
		warnings += oneIf(s == checkWarning)
		failures += oneIf(s == checkFailed)
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
func (c *checkup) check(r checkResult, format string, args ...any) {
	c.report.Checks = append(c.report.Checks, r)
	c.say(r.Status, format, args...)
}

// crd adds a CustomResourceDefinition to the report and prints its line.
func (c *checkup) crd(r checkResult, format string, args ...any) {
	c.report.CRDs = append(c.report.CRDs, r)
	c.say(r.Status, format, args...)
}

func (c *checkup) say(status checkStatus, format string, args ...any) {
	switch status {
	case checkOK:
		c.app.ui.Success(format, args...)
	case checkWarning:
		c.app.ui.Warning(format, args...)
	default:
		c.app.ui.Failure(format, args...)
	}
}
