package rules

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/lazy"
)

// serverOf returns the object with the address of the server: the object itself or its source.
func serverOf(s Subject) string {
	if sources := s.Kind.SourceOf(s.Object); s.Kind.Fetch.Address == "" && len(sources) == 1 {
		return sources[0].String()
	}
	return s.String()
}

// addressOf returns the address that the object fetches from, without credentials.
func addressOf(s Subject) string {
	if address := s.Text(s.Kind.Fetch.Address); address != "" {
		return withoutUser(address)
	}
	if s.failure.Address != "" {
		return s.failure.Address
	}
	return "the server of " + serverOf(s)
}

// addressField returns the field with the address, or the object that has it.
func addressField(s Subject) string {
	if field := s.Kind.Fetch.Address; field != "" {
		return "." + field + " of " + s.String()
	}
	return "the address of " + serverOf(s)
}

// userOf matches the scheme, user and password of a URL.
var userOf = lazy.Regexp(`^([a-z0-9+]+://)[^/@\s]*@`)

// withoutUser removes the user and the password from a URL.
func withoutUser(address string) string { return userOf().ReplaceAllString(address, "$1") }

// credentialsOf returns the Secret with the credentials, or "".
func credentialsOf(s Subject) string {
	field := s.Kind.Fetch.Credentials
	if field == "" {
		return namedSecret(s)
	}
	return prefixed("Secret "+s.namespace()+"/", s.Text(field+".name"))
}

// credentialsField returns the field that refers to the Secret with credentials, in the object or its source, or "" if neither
// kind has one.
func credentialsField(s Subject) string {
	k, t := s.Kind, s.ID()
	if sources := k.SourceOf(s.Object); k.Fetch.Credentials == "" && len(sources) == 1 {
		t = sources[0]
		k, _ = t.Flux()
	}
	if k.Fetch.Credentials == "" {
		return ""
	}
	return "." + k.Fetch.Credentials + " of " + t.String()
}

// credentialsOrField returns the Secret with the credentials, or the field that would refer to it.
func credentialsOrField(s Subject) string {
	if secret := credentialsOf(s); secret != "" {
		return secret
	}
	if field := credentialsField(s); field != "" {
		return "the Secret of " + field
	}
	return "the credentials of " + serverOf(s)
}

// revisionOf returns the requested branch, tag or version.
func revisionOf(s Subject) string {
	field := s.Kind.Fetch.Revision
	for _, name := range []string{"commit", "digest", "name", "semver", "tag", "branch"} {
		if v := s.Text(field + "." + name); v != "" {
			if name == "semver" {
				name = "tag matching semver"
			}
			return name + " " + v
		}
	}
	return s.Text(field)
}

// revisionFields returns the fields with the revision and the address.
func revisionFields(s Subject) string {
	var fields []string
	for _, field := range []string{s.Kind.Fetch.Revision, s.Kind.Fetch.Address} {
		if field != "" {
			fields = append(fields, "."+field)
		}
	}
	return strings.Join(fields, " or ") + " of " + s.String()
}

// namedSecret returns the Secret that the message mentions, or "".
func namedSecret(s Subject) string {
	if n := s.failure.Named; n.Kind == "Secret" && n.Name != "" {
		return "Secret " + secretNamespace(s) + "/" + n.Name
	}
	return ""
}

func secretNamespace(s Subject) string { return cmp.Or(s.failure.Named.Namespace, s.namespace()) }

// secretField returns the field of the object that references a Secret, or "".
func secretField(s Subject, name string) string {
	for _, field := range s.Kind.Secrets {
		switch name {
		case s.Text(field + ".name"):
			return "." + field + ".name"
		case s.Text(field):
			return "." + field
		}
	}
	return ""
}

// createNamedSecret returns the command that creates the Secret that the message mentions.
func createNamedSecret(s Subject) string {
	name := s.failure.Named.Name
	field := strings.TrimSuffix(strings.TrimPrefix(secretField(s, name), "."), ".name")
	return createSecret(s, field, secretNamespace(s), name)
}

// anyName is the placeholder for a name that the user chooses.
const anyName = "<name>"

// createSecret returns the command that creates the Secret referenced by a field of the spec.
func createSecret(s Subject, field, namespace, name string) string {
	if field == s.Kind.Fetch.Credentials && s.Kind.Fetch.Login != "" {
		return loginCommand(s, namespace, name)
	}
	return hint.Command("kubectl -n %s create secret generic %s --from-file=<key>=<file>", namespace, name)
}

// loginCommand returns the `flux create secret` command for the credentials of a kind.
func loginCommand(s Subject, namespace, name string) string {
	word, address := s.Kind.Fetch.Login, withoutUser(s.Text(s.Kind.Fetch.Address))
	password := []string{"--username=<user>", "--password-file=<file>"}
	var flags []string
	switch registry, oci := strings.CutPrefix(address, "oci://"); {
	case word == "receiver":
		flags = []string{"--type=" + hint.Quote(s.Text("spec.type")), "--hostname=<host>"}
	case oci || word == "oci":
		word = "oci"
		host, _, _ := strings.Cut(registry, "/")
		if !strings.ContainsAny(host, ".:") { // the registry of Docker Hub has another host name
			return hint.Command("kubectl -n %s create secret generic %s --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=<file>", namespace, name)
		}
		flags = append([]string{"--url=" + hint.Quote(host)}, password...)
	case word == "git" && strings.HasPrefix(address, "ssh://"):
		// The user is part of the address. The command creates a key and prints the public key.
		flags = []string{"--url=" + hint.Quote(withoutPassword(s.Text(s.Kind.Fetch.Address)))}
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

// withoutPassword removes the password from a URL. It replaces an invalid URL completely, since the password may be anywhere in
// it.
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
