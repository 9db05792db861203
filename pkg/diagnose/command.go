package diagnose

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// A remedy that has a command ends with it, behind ": " unless the command is all
// of it, so that both people and programs can take it as it is. What only the
// reader knows is in angle brackets.

var harmless = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9@%_+=:,./-]+$`) })

// argument quotes a word for a shell where it needs that: specs and the paths of
// repositories are not ours.
func argument(word string) string {
	if harmless().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// withoutPassword removes the password from a URL. What is no URL may have one anywhere.
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

// inNamespace is the flag of kubectl for a namespace, with a space before it; ""
// for what has none.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// createSecret is the command that creates the Secret that a field of the spec
// refers to.
func (s subject) createSecret(field, namespace, name string) string {
	if field == s.kind.Fetch.Credentials && s.kind.Fetch.Login != "" {
		return s.login(namespace, name)
	}
	return fmt.Sprintf("kubectl -n %s create secret generic %s --from-file=<key>=<file>", namespace, name)
}

// login is the command that creates the Secret with the credentials of a kind
// that flux create secret has a word for.
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
		if !strings.ContainsAny(host, ".:") { // an image of Docker Hub, whose registry has names of its own
			return fmt.Sprintf("kubectl -n %s create secret generic %s --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=<file>", namespace, name)
		}
		flags = append([]string{"--url=" + argument(host)}, password...)
	case word == "git" && strings.HasPrefix(address, "ssh://"):
		// The user belongs to the address; the command creates the key and prints its public part.
		flags = []string{"--url=" + argument(withoutPassword(s.text(s.kind.Fetch.Address)))}
	case word == "git":
		flags = append([]string{"--url=" + argument(address)}, password...)
	default:
		flags = password
	}
	return strings.Join(append([]string{"flux", "create", "secret", word, name, "-n", namespace}, flags...), " ")
}
