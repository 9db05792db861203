package recording

import (
	"net/url"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Masker removes secrets from recorded data. It remembers the values of credentials that it has
// masked, and also masks them in later messages and logs.
type Masker struct{ known redact.Set }

// hookPath matches the webhook path of a Receiver. The path is derived from the Receiver's token
// and, for some types, sufficient to call the webhook.
var hookPath = lazy.Regexp(`/hook/[0-9a-f]{64}`)

// configured reports whether the objects of a group are recorded with their spec. Commands read the
// specs of Flux objects and workloads; other specs may contain anything.
func configured(group string) bool {
	return slices.Contains([]string{"", "apps", "batch", "policy", "apiextensions.k8s.io"}, group) || slices.Contains(controllers.Groups(), group)
}

// contents lists the fields with the content of Secrets and ConfigMaps.
var contents = []string{"data", "stringData", "binaryData"}

// settings lists the fields of a Flux object that contain the configuration of applications.
var settings = [][]string{{"values"}, {"postBuild", "substitute"}, {"patchesStrategicMerge"}, {"patchesJson6902"}}

// texts lists the fields with human-readable messages.
var texts = []string{"message", "note", "description"}

// Object masks an object in place. group is its API group.
func (m *Masker) Object(group string, o controllers.Object) {
	for _, field := range contents {
		delete(o, field)
	}
	spec, _ := o["spec"].(map[string]any)
	flux := slices.Contains(controllers.Groups(), group)
	switch {
	case !configured(group):
		delete(o, "spec")
	case flux:
		m.settings(spec)
	}
	metadata, _ := o["metadata"].(map[string]any)
	m.annotations(metadata)
	if !flux && o["kind"] != "Secret" {
		delete(metadata, "managedFields")
	}
	m.walk("", o)
}

func (m *Masker) annotations(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	for name := range annotations {
		if strings.HasSuffix(name, "/last-applied-configuration") || redact.Named(name) {
			annotations[name] = redact.Mask
		}
	}
}

// settings masks the configuration of applications in the spec of a Flux object.
func (m *Masker) settings(spec map[string]any) {
	for _, path := range settings {
		at, last := spec, path[len(path)-1]
		for _, step := range path[:len(path)-1] {
			at, _ = at[step].(map[string]any)
		}
		if at[last] != nil {
			at[last] = m.leaves(last, at[last])
		}
	}
	if address, ok := spec["address"].(string); ok {
		spec["address"] = withoutPath(address)
	}
}

// withoutPath masks the path of an address, which many services treat as a secret.
func withoutPath(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return redact.Mask
	}
	return u.Scheme + "://" + u.Host + "/" + redact.Mask
}

// leaves masks all values below a field, and keeps the names.
func (m *Masker) leaves(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = m.leaves(key, value)
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = m.leaves(name, value)
		}
		return v
	case nil:
		return nil
	}
	return m.value(name, v)
}

// value returns the mask of a value. It remembers the value if the name is a credential name.
func (m *Masker) value(name string, v any) any {
	if text, ok := v.(string); ok && redact.Named(camelCase().ReplaceAllString(name, "$1-$2")) {
		m.known.Add(text)
	}
	return redact.Mask
}

// camelCase matches the boundary between two words of a name such as clientSecret.
var camelCase = lazy.Regexp(`([a-z0-9])([A-Z])`)

// walk masks patches, the values of environment variables, headers and arguments, and the credentials in all texts.
func (m *Masker) walk(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "patch" {
				v[key] = redact.Mask
				continue
			}
			v[key] = m.walk(key, value)
		}
	case []any:
		switch name {
		case "env", "httpHeaders":
			m.named(v)
		case "args", "command":
			m.arguments(v)
		}
		for i, value := range v {
			v[i] = m.walk(name, value)
		}
	case string:
		if slices.Contains(texts, name) {
			return m.Text(v)
		}
		return mask(v)
	}
	return v
}

// named masks the values in a list of name-value pairs.
func (m *Masker) named(list []any) {
	for _, item := range list {
		pair, _ := item.(map[string]any)
		name, _ := pair["name"].(string)
		if value, ok := pair["value"].(string); ok && value != "" {
			pair["value"] = m.value(name, value)
		}
	}
}

// arguments masks the credentials among the arguments of a command: --token=x and --token x.
func (m *Masker) arguments(list []any) {
	for i, item := range list {
		text, _ := item.(string)
		name, value, assigned := strings.Cut(text, "=")
		if !redact.Named(strings.TrimLeft(name, "-")) {
			continue
		}
		next, follows := "", false
		if i+1 < len(list) {
			next, follows = list[i+1].(string)
		}
		switch {
		case assigned:
			m.known.Add(value)
			list[i] = name + "=" + redact.Mask
		case strings.HasPrefix(name, "-") && follows:
			m.known.Add(next)
			list[i+1] = redact.Mask
		}
	}
}

// Text masks the credentials in a message or a log.
func (m *Masker) Text(text string) string { return m.known.Text(mask(text)) }

func mask(text string) string {
	text = redact.Text(text)
	if strings.Contains(text, "/hook/") {
		text = hookPath().ReplaceAllString(text, "/hook/"+redact.Mask)
	}
	return text
}
