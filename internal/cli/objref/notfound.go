package objref

import (
	"fmt"

	"github.com/fluxkit/flux/pkg/controllers"
)

// InstallHint names the controller that a kind comes with and how to install it.
func InstallHint(k controllers.Kind) string {
	command := "flux install"
	if c, ok := controllers.Find(k.Controller); ok && c.Extra {
		command += " --components-extra=" + c.Name
	}
	return fmt.Sprintf("it comes with the %s: %s", k.Controller, command)
}

// InNamespace is how messages call a namespace, or all of them for "".
func InNamespace(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return fmt.Sprintf("%q namespace", namespace)
}

// NotFoundError is returned for an object that does not exist.
type NotFoundError struct {
	Target Target
	// Others are the kinds that the name may also have meant.
	Others []controllers.Kind
}

func (e *NotFoundError) Error() string {
	if len(e.Others) > 0 {
		return fmt.Sprintf("no Flux object named %q found in %s", e.Target.Name, InNamespace(e.Target.Namespace))
	}
	return fmt.Sprintf("%s object '%s' not found in %s", e.Target.Kind.Kind, e.Target.Name, InNamespace(e.Target.Namespace))
}

// AllKinds are those that the name may have meant.
func (e *NotFoundError) AllKinds() []controllers.Kind {
	return append([]controllers.Kind{e.Target.Kind}, e.Others...)
}

// Remedy is the hint where no object of a similar name exists.
func (e *NotFoundError) Remedy() string {
	if len(e.Others) > 0 {
		return "list all objects: flux get all -A"
	}
	return ""
}
