package app

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// listForbidden matches the message of the API server for a list without permission. It is compiled only after a failure.
const listForbidden = `forbidden: (User "[^"]*" cannot list) resource "([^"]+)" in API group "[^"]*" (in the namespace "[^"]*"|at the cluster scope)$`

// denial is a missing permission to list resources.
type denial struct {
	user, scope string
	resources   []string
	// err is the error of the first resource.
	err error
}

// ReportLists reports the errors of lists of several kinds. Missing permissions are reported last, in one
// line per namespace.
func ReportLists(a *App, failures []error) {
	message := regexp.MustCompile(listForbidden)
	var denials []denial
	for _, err := range failures {
		parts := message.FindStringSubmatch(err.Error())
		if parts == nil || strings.Contains(err.Error(), "\n") || !apierrors.IsForbidden(err) {
			a.Report(err)
			continue
		}
		i := slices.IndexFunc(denials, func(d denial) bool { return d.user == parts[1] && d.scope == parts[3] })
		if i < 0 {
			i, denials = len(denials), append(denials, denial{user: parts[1], scope: parts[3], err: err})
		}
		denials[i].resources = append(denials[i].resources, parts[2])
	}
	for _, d := range denials {
		if len(d.resources) > 1 {
			d.err = fmt.Errorf("%s %s %s", d.user, strings.Join(d.resources, ", "), d.scope)
		}
		a.Report(d.err)
	}
}
