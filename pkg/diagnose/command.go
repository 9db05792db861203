package diagnose

import (
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// A remedy with a command is the command itself or ends with ": " and the command, so that users
// and programs can copy it. Placeholders are in angle brackets.

// anyName is the placeholder for a name that the user chooses.
const anyName = "<name>"

// withoutPassword removes the password from a URL. It replaces an invalid URL completely, since the
// password may be anywhere in it.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "<url>"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// inNamespace returns the namespace flag of kubectl with a leading space, or ""
// for a cluster-scoped object.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + hint.Quote(namespace)
}

// createSecret returns the command that creates the Secret referenced by a field of the spec.
func (s origin) createSecret(field, namespace, name string) string {
	if field == s.kind.Fetch.Credentials && s.kind.Fetch.Login != "" {
		return s.login(namespace, name)
	}
	return hint.Command("kubectl -n %s create secret generic %s --from-file=<key>=<file>", namespace, name)
}

// login returns the `flux create secret` command for the credentials of a kind.
func (s origin) login(namespace, name string) string {
	word, address := s.kind.Fetch.Login, withoutUser(s.text(s.kind.Fetch.Address))
	password := []string{"--username=<user>", "--password-file=<file>"}
	var flags []string
	switch registry, oci := strings.CutPrefix(address, "oci://"); {
	case word == "receiver":
		flags = []string{"--type=" + hint.Quote(s.text("spec.type")), "--hostname=<host>"}
	case oci || word == "oci":
		word = "oci"
		host, _, _ := strings.Cut(registry, "/")
		if !strings.ContainsAny(host, ".:") { // the registry of Docker Hub has another host name
			return hint.Command("kubectl -n %s create secret generic %s --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=<file>", namespace, name)
		}
		flags = append([]string{"--url=" + hint.Quote(host)}, password...)
	case word == "git" && strings.HasPrefix(address, "ssh://"):
		// The user is part of the address. The command creates a key and prints
		// the public key.
		flags = []string{"--url=" + hint.Quote(withoutPassword(s.text(s.kind.Fetch.Address)))}
	case word == "git":
		flags = append([]string{"--url=" + hint.Quote(address)}, password...)
	default:
		flags = password
	}
	if name != anyName {
		name = hint.Quote(name)
	}
	return "flux create secret " + word + " " + name + " -n " + hint.Quote(namespace) + " " + strings.Join(flags, " ")
}
