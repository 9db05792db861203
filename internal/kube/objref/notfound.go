package objref

import (
	"fmt"

	"github.com/fluxkit/flux/pkg/controllers"
)

// InstallHint returns the hint to install the controller of a kind, with the command for a Flux controller.
func InstallHint(k controllers.Kind) string {
	command := "flux install"
	c, ok := controllers.Find(k.Controller)
	if !ok {
		return "install " + k.Controller
	}
	if c.Extra {
		command += " --components-extra=" + c.Name
	}
	return fmt.Sprintf("install %s: %s", k.Controller, command)
}

// InNamespace returns a description of a namespace for messages, "any namespace" for "".
func InNamespace(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return fmt.Sprintf("%q namespace", namespace)
}

// NotFoundError is returned for an object that does not exist.
type NotFoundError struct {
	Target Target
	// Others lists the other kinds that were searched for the name.
	Others []controllers.Kind
}

func (e *NotFoundError) Error() string {
	if len(e.Others) > 0 {
		return fmt.Sprintf("no Flux object named %q found in %s", e.Target.Name, InNamespace(e.Target.Namespace))
	}
	return fmt.Sprintf("%s object '%s' not found in %s", e.Target.Kind.Kind, e.Target.Name, InNamespace(e.Target.Namespace))
}

// AllKinds returns all kinds that were searched for the name.
func (e *NotFoundError) AllKinds() []controllers.Kind {
	return append([]controllers.Kind{e.Target.Kind}, e.Others...)
}

// Remedy returns the hint if no object has a similar name.
func (e *NotFoundError) Remedy() string {
	if len(e.Others) > 0 {
		return "list all objects: flux get all -A"
	}
	return ""
}
