package rules

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// words holds the words that rule texts may contain in braces, with their values.
var words = map[string]func(Subject) string{
	// The Flux object.
	"object":               Subject.String,
	"namespace":            Subject.namespace,
	"controller":           func(s Subject) string { return s.Kind.Controller },
	"in home":              func(s Subject) string { return inNamespace(s.Home) },
	"path":                 func(s Subject) string { return strconv.Quote(s.Text("spec.path")) },
	"bucket":               func(s Subject) string { return strconv.Quote(s.Text("spec.bucketName")) },
	"decryption secret":    decryptionSecret,
	"to decryption secret": func(s Subject) string { return prefixed(" to ", decryptionSecret(s)) },
	"reconcile":            func(s Subject) string { return s.Command("reconcile") },
	"build":                buildCommand,
	"helm history":         helmHistory,
	"image repositories":   func(s Subject) string { return hint.Command("flux get image repository -n %s", s.namespace()) },
	"template":             templateOf,
	"copied":               copiedObject,
	"needed":               func(s Subject) string { return neededObject(s, "") },
	"distribution":         func(s Subject) string { return strconv.Quote(s.Text("spec.distribution.version")) },
	"interval":             intervalField,
	// The failure.
	"message":  func(s Subject) string { return failure.OneLine(s.failed.Message) },
	"detail":   func(s Subject) string { return failure.OneLine(cmp.Or(s.failure.Detail, s.failed.Message)) },
	"text":     func(s Subject) string { return failure.OneLine(s.failure.Text) },
	"by":       func(s Subject) string { return s.failure.By },
	"variable": func(s Subject) string { return s.failure.Name },
	"version":  func(s Subject) string { return s.failure.Version },
	"default":  func(s Subject) string { return "${" + s.failure.Name + ":-value}" },
	"verb":     func(s Subject) string { return s.failure.Verb },
	"resource": func(s Subject) string { return s.failure.Resource },
	"scope":    func(s Subject) string { return s.failure.Scope },
	"user":     deniedUser,
	"named":    func(s Subject) string { return s.failure.Named.String() },
	"name":     func(s Subject) string { return s.failure.Named.Name },
	"operand":  func(s Subject) string { return hint.Operand(s.failure.Named.Name) },
	"substituted": func(s Subject) string {
		return s.failure.Object.Kind + "/" + s.namespace() + "/" + s.failure.Named.Name
	},
	// The build of a Kustomization.
	"kustomization file": func(s Subject) string { return s.failure.Kustomization() },
	"entry":              func(s Subject) string { return cmp.Or(s.failure.Name, s.failure.Address) },
	"file":               func(s Subject) string { return s.failure.Address },
	"kubeconfig":         kubeConfig,
	"update path":        func(s Subject) string { return strconv.Quote(s.Text("spec.update.path")) },
	"ignored":            func(s Subject) string { return s.Live.Ignored },
	"target namespace":   targetNamespace,
	"dependency":         dependencyOf,
	"common metadata":    commonMetadata,
	// The object that the API server or a health check has rejected.
	"rejected":           rejectedObject,
	"rejected namespace": rejectedNamespace,
	"kubectl":            func(s Subject) string { return "kubectl" + inNamespace(rejectedNamespace(s)) },
	"in file":            inFile,
	"fields":             rejectedFields,
	"problems":           fieldProblems,
	"unhealthy":          unhealthyObjects,
	"api":                missingAPI,
	"rejecter":           func(s Subject) string { return cmp.Or(s.failure.By, "API server") },
	"or policy":          func(s Subject) string { return prefixed(", or the policy ", s.failure.By) },
	// The server that the object or its source fetches from.
	"server":             serverOf,
	"address":            addressOf,
	"address field":      func(s Subject) string { return "." + s.Kind.Fetch.Address },
	"address of":         addressField,
	"ca field":           func(s Subject) string { return "." + s.Kind.Fetch.CA },
	"revision":           revisionOf,
	"provider":           func(s Subject) string { return s.Text("spec.provider") },
	"commit":             func(s Subject) string { return hint.Quote(s.Text("spec.ref.commit")) },
	"proxy secret":       proxySecret,
	"from":               func(s Subject) string { return prefixed(" from ", s.failure.Address) },
	"revision fields":    revisionFields,
	"credentials":        credentialsOf,
	"or credentials":     credentialsOrField,
	"credentials field":  credentialsField,
	"own credentials":    func(s Subject) string { return "." + s.Kind.Fetch.Credentials },
	"create credentials": func(s Subject) string { return createSecret(s, s.Kind.Fetch.Credentials, s.namespace(), anyName) },
	"secret":             namedSecret,
	"secret field":       func(s Subject) string { return secretField(s, s.failure.Named.Name) },
	"create secret":      createNamedSecret,
}

// prefixed returns a text with a prefix, or "" without a text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// dependencyOf returns the object of the same kind that the message mentions.
func dependencyOf(s Subject) string {
	return s.Kind.ID(cmp.Or(s.failure.Named.Namespace, s.namespace()), s.failure.Named.Name).String()
}

// intervalField returns the field or annotation with the interval of the object.
func intervalField(s Subject) string {
	if annotation := s.Kind.Schedule.Interval; annotation != "" {
		return "annotation " + annotation
	}
	return ".spec.interval"
}

// decryptionSecret returns the Secret with the decryption keys of a Kustomization, or "".
func decryptionSecret(s Subject) string {
	return prefixed("Secret "+s.namespace()+"/", s.Text("spec.decryption.secretRef.name"))
}

// buildCommand returns the command that builds a Kustomization in a clone of its source.
func buildCommand(s Subject) string {
	return hint.Command("flux build kustomization %s -n %s --path %s", controllers.Name(s.Object), s.namespace(), cmp.Or(s.Text("spec.path"), "."))
}

// inNamespace returns the namespace flag of kubectl with a leading space, or "" for a cluster-scoped object.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + hint.Quote(namespace)
}

// Kubectl returns a kubectl command for an object.
func Kubectl(t controllers.ID, verb string, flags ...string) string {
	resource := strings.ToLower(t.Kind)
	if t.Group != "" {
		resource += "." + t.Group
	}
	return strings.Join(append([]string{"kubectl" + inNamespace(t.Namespace), verb, KubectlName(resource, t.Name)}, flags...), " ")
}

// KubectlName returns the arguments of kubectl for an object. The name of an RBAC object may begin with a dash, which kubectl
// accepts only after a slash.
func KubectlName(resource, name string) string {
	separator := " "
	if strings.HasPrefix(name, "-") {
		separator = "/"
	}
	return hint.Quote(resource) + separator + hint.Quote(name)
}

// Logs returns the command that prints the controller logs of an object.
func Logs(t controllers.ID) string {
	return hint.Command("flux logs --for %s -n %s", t.Kind+"/"+t.Name, t.Namespace)
}
