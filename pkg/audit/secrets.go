package audit

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
)

// public lists the keys of Secrets whose values are not confidential.
var public = []string{"ca.crt", "caFile", "ca.pem", "tls.crt", "certFile", "identity.pub", "known_hosts", "username", "githubAppID", "githubAppInstallationID", "githubAppBaseURL"}

// plainSecrets finds Secrets in Git whose values are neither encrypted nor taken from another Secret.
func plainSecrets(_ *state, o *Object) []hit {
	if !o.ID.IsSecret() || o.Encrypted || o.Partial || build.IsHelmRelease(o.Owner) {
		return nil
	}
	var keys []string
	for _, field := range []string{"data", "stringData"} {
		values, _ := o.Unstructured.Object[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			value, _ := values[key].(string)
			if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && field == "data" {
				value = string(decoded)
			}
			if !slices.Contains(public, key) && isReadable(value) && !derived(o, field, key) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	field := "stringData"
	if !has(o, field) {
		field = "data"
	}
	return when(len(keys) > 0, hit{
		field: field, message: "in plain text: " + strings.Join(keys, ", "),
		fix: "encrypt it with SOPS, or create it on the cluster, and replace the credentials",
	})
}

// derived reports whether a value comes from a Secret, so that the file does not contain it.
func derived(o *Object, path ...string) bool {
	return slices.ContainsFunc(o.Secret, func(secret []string) bool {
		return len(secret) <= len(path) && slices.Equal(secret, path[:len(secret)])
	})
}

// isReadable reports whether a value is neither empty, nor encrypted, nor a variable that a Kustomization substitutes.
func isReadable(value string) bool {
	return strings.TrimSpace(value) != "" && !contains(value, "ENC[", "${", `"sops":`, "\nsops:")
}

// isPlain reports whether a value that is not in a Secret is readable, and neither a template, nor a reference, nor a path.
func isPlain(value string) bool {
	return isReadable(value) && !contains(value, "{{", "<<", "$(") && !strings.HasPrefix(value, "/")
}

func contains(value string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(value, part) })
}

// credentialNames lists the suffixes of credential field names.
var credentialNames = [][]string{
	{"password"}, {"passwd"}, {"pwd"}, {"passphrase"}, {"token"}, {"apikey"}, {"api", "key"}, {"access", "key"}, {"private", "key"}, {"client", "secret"},
	{"connection", "string"},
}

// otherWords lists words in the names of fields that hold a name, a path or a setting instead of a credential.
var otherWords = []string{
	"existing", "use", "enable", "enabled", "require", "mount", "file", "path", "from", "name", "ref", "min", "max", "length", "continue", "next", "page",
}

// word matches a word of a name such as dbPassword, DB_PASSWORD or db-password.
var word = lazy.Regexp(`[A-Z]?[a-z0-9]+|[A-Z0-9]+`)

// isCredential reports whether a field with a name and a value contains a credential.
func isCredential(name, value string) bool {
	words := word().FindAllString(name, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(otherWords, w) }) || !isPlain(value) || strings.Contains(value, "://") {
		return false
	}
	if _, err := strconv.ParseBool(value); err == nil {
		return false
	}
	return slices.ContainsFunc(credentialNames, func(last []string) bool {
		return len(last) <= len(words) && slices.Equal(words[len(words)-len(last):], last)
	})
}

// plainCredentials finds credentials in the values of HelmReleases, ConfigMaps, substitutions, environment variables and URLs.
func plainCredentials(s *state, o *Object) []hit {
	if ofChart(o) != "" || s.ofFlux(o) {
		return nil // a chart default, or a value of the HelmRelease
	}
	c := credentials{object: o}
	root := o.Unstructured.Object
	_, flux := o.ID.Flux()
	switch {
	case build.IsHelmRelease(o.Unstructured):
		c.each([]string{"spec", "values"}, controllers.Path{"spec.values"})
	case build.IsKustomization(o.Unstructured):
		c.each([]string{"spec", "postBuild", "substitute"}, controllers.Path{"spec.postBuild.substitute"})
	case o.ID.IsConfigMap():
		c.each([]string{"data"}, controllers.Path{"data"})
	}
	if flux {
		c.urls([]string{"spec"}, root["spec"])
	}
	c.environment()
	return c.found
}

// credentials collects the credentials in an object.
type credentials struct {
	object *Object
	found  []hit
}

func (c *credentials) each(at []string, path controllers.Path) {
	value, _ := path.Lookup(c.object.Unstructured.Object)
	c.walk(at, value, func(at []string, value string) {
		if name := at[len(at)-1]; isCredential(name, value) {
			c.add(at, "", "looks like a credential in plain text")
		}
	})
}

// urls finds passwords in URLs.
func (c *credentials) urls(at []string, value any) {
	c.walk(at, value, func(at []string, value string) {
		if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
			return
		}
		u, err := url.Parse(value)
		if err != nil || u.User == nil {
			return
		}
		if password, set := u.User.Password(); set && isPlain(password) {
			c.add(at, validate.Invalid, "contains a password")
		}
	})
}

// environment finds credentials in the environment variables of containers.
func (c *credentials) environment() {
	for _, pod := range controllers.PodSpecs(c.object.Unstructured.Object) {
		for _, container := range controllers.Containers(pod) {
			for _, variable := range container.Elements("env") {
				name, value := variable.Text("name"), variable.Text("value")
				if isCredential(name, value) && !slices.ContainsFunc(c.object.Secret, func(path []string) bool { return slices.Contains(path, "env") }) {
					c.found = append(c.found, hit{
						field: variable.Field + ".value", message: name + " looks like a credential in plain text", fix: "use valueFrom.secretKeyRef",
					})
				}
			}
		}
	}
}

// walk calls visit for each string in a value that does not come from a Secret.
func (c *credentials) walk(at []string, value any, visit func(at []string, value string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.walk(append(slices.Clone(at), key), value[key], visit)
		}
	case []any:
		for i, below := range value {
			c.walk(append(slices.Clone(at), strconv.Itoa(i)), below, visit)
		}
	case string:
		if !derived(c.object, at...) {
			visit(at, value)
		}
	}
}

func (c *credentials) add(at []string, severity validate.Severity, message string) {
	fix := "move it to a Secret, and replace the credential"
	if build.IsHelmRelease(c.object.Unstructured) && at[1] == "values" {
		fix = "move it to a Secret in spec.valuesFrom, and replace the credential"
	}
	c.found = append(c.found, hit{severity: severity, field: field(at), message: message, fix: fix})
}

// field returns the path of a field with the indices of lists in brackets.
func field(at []string) string {
	var b strings.Builder
	for i, step := range at {
		if _, err := strconv.Atoi(step); err == nil && i > 0 {
			b.WriteString("[" + step + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}
