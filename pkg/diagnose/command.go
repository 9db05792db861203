package diagnose

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// A remedy with a command is the command, or ends with ": " and the command, so
// that users and programs can copy it. Placeholders are in angle brackets.

var harmless = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9@%_+=:,./-]+$`) })

// argument quotes a word for a shell if necessary: specs and paths in
// repositories are untrusted.
func argument(word string) string {
	if harmless().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// withoutPassword removes the password from a URL. It replaces an invalid URL,
// which may contain a password anywhere.
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
	return " -n " + namespace
}

// createSecret returns the command that creates the Secret to which a field of
// the spec refers.
func (s subject) createSecret(field, namespace, name string) string {
	if field == s.kind.Fetch.Credentials && s.kind.Fetch.Login != "" {
		return s.login(namespace, name)
	}
	return fmt.Sprintf("kubectl -n %s create secret generic %s --from-file=<key>=<file>", namespace, name)
}

// login returns the `flux create secret` command for the credentials of a kind.
func (s subject) login(namespace, name string) string {
	word, address := s.kind.Fetch.Login, withoutUser(s.text(s.kind.Fetch.Address))
	password := []string{"--username=<user>", "--password-file=<file>"}
	var flags []string
	switch registry, oci := strings.CutPrefix(address, "oci://"); {
	case word == "receiver":
		flags = []string{"--type=" + argument(s.text("spec.type")), "--hostname=<host>"}
	case oci || word == "oci":
		word = "oci"
		host, _, _ := strings.Cut(registry, "/")
		if !strings.ContainsAny(host, ".:") { // Docker Hub: its registry has another host name
			return fmt.Sprintf("kubectl -n %s create secret generic %s --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=<file>", namespace, name)
		}
		flags = append([]string{"--url=" + argument(host)}, password...)
	case word == "git" && strings.HasPrefix(address, "ssh://"):
		// The user is part of the address. The command creates a key and prints
		// the public key.
		flags = []string{"--url=" + argument(withoutPassword(s.text(s.kind.Fetch.Address)))}
	case word == "git":
		flags = append([]string{"--url=" + argument(address)}, password...)
	default:
		flags = password
	}
	return strings.Join(append([]string{"flux", "create", "secret", word, name, "-n", namespace}, flags...), " ")
}
