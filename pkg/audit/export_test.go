package audit

import (
	"github.com/fluxkit/flux/pkg/validate"
)

// CheckDeployment applies the rules to a deployment.
func CheckDeployment(d validate.Deployment) []validate.Found {
	found, _ := check(newState(d, false), Exclusions{})
	return found
}
