// Package syntax parses and validates command line values for fields of objects: names, references,
// addresses, labels and version ranges. It rejects invalid values before they are sent to the
// server.
package syntax

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/internal/lazy"
)

// Name returns an error if s cannot be the name of a Flux object, an RFC 1123 label.
func Name(s string) error {
	if len(validation.IsDNS1123Label(s)) > 0 {
		return fmt.Errorf("invalid name %q: must be an RFC 1123 label: up to 63 lower-case letters, digits and '-', starting and ending with a letter or digit", s)
	}
	return nil
}

// ObjectName returns an error if s cannot be the name of a Kubernetes object, an RFC 1123
// subdomain.
func ObjectName(s string) error {
	if len(validation.IsDNS1123Subdomain(s)) > 0 {
		return fmt.Errorf("invalid name %q: must be an RFC 1123 subdomain: lower-case letters, digits, '-' and '.', starting and ending with a letter or digit", s)
	}
	return nil
}

// Labels parses key=value pairs.
func Labels(pairs []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("invalid label %q: must be key=value", pair)
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("invalid label %q: the key %s", pair, problems[0])
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, fmt.Errorf("invalid label %q: the value %s", pair, problems[0])
		}
		if before, twice := labels[key]; twice && before != value {
			return nil, fmt.Errorf("label %q has two values: %q and %q", key, before, value)
		}
		labels[key] = value
	}
	return labels, nil
}

// URL parses an address with one of the given schemes.
func URL(s string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(s)
	if user, path, scp := strings.Cut(s, ":"); err != nil && scp && strings.Contains(user, "@") && slices.Contains(schemes, "ssh") {
		return nil, fmt.Errorf("not a URL: use ssh://%s/%s", user, strings.TrimPrefix(path, "/"))
	}
	if err != nil {
		// The error of the parser contains the address, which may contain a password.
		return nil, errors.New("not a URL")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("unsupported scheme %q: must be one of %s", u.Scheme, strings.Join(schemes, ", "))
	}
	if u.Hostname() == "" {
		return nil, errors.New("the URL has no host")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("the URL contains a password, which is visible to all users who can read the object")
	}
	return u, nil
}

// Range returns an error if s is not a semver range, such as ">=1.0.0 <2.0.0".
func Range(s string) error {
	if _, err := semver.NewConstraint(s); err != nil {
		return fmt.Errorf("invalid semver range %q: must be a range such as '>=1.0.0 <2.0.0' or '6.x'", s)
	}
	return nil
}

// Path cleans a path within a source and prefixes it with "./". Paths outside the source are
// errors.
func Path(s string) (string, error) {
	if strings.ContainsRune(s, 0) {
		return "", errors.New("invalid path: contains a NUL byte")
	}
	clean := path.Clean("./" + strings.TrimLeft(strings.ReplaceAll(s, `\`, "/"), "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("path %q is outside the source", s)
	}
	if clean == "." {
		return "./", nil
	}
	return "./" + clean, nil
}

// LayerOperations are the layer operations of source-controller.
var LayerOperations = []string{"extract", "copy"}

// Layer is a layer selector of an OCIRepository.
type Layer struct{ MediaType, Operation string }

// mediaType is the grammar of media types (RFC 6838, section 4.2), which have no colon.
var mediaType = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$`)

// ParseLayer parses a layer selector, MEDIATYPE:OPERATION or MEDIATYPE alone.
func ParseLayer(s string) (Layer, error) {
	media, operation, found := strings.Cut(s, ":")
	switch {
	case !mediaType().MatchString(media):
		return Layer{}, fmt.Errorf("invalid layer selector %q: %q is not a media type: must be MEDIATYPE:OPERATION, such as application/vnd.cncf.flux.content.v1.tar+gzip:extract", s, media)
	case found && !slices.Contains(LayerOperations, operation):
		return Layer{}, fmt.Errorf("invalid layer selector %q: operation %q must be one of %s", s, operation, strings.Join(LayerOperations, ", "))
	}
	return Layer{MediaType: media, Operation: operation}, nil
}

// repository is the grammar of image repositories with an optional host and port, without tag or
// digest (distribution specification).
var repository = lazy.Regexp(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// Image returns an error if s is not an image repository.
func Image(s string) error {
	last := s[strings.LastIndex(s, "/")+1:]
	if !repository().MatchString(s) || strings.Contains(s, "/") && strings.Contains(last, ":") {
		return fmt.Errorf("invalid image repository %q: must be a repository such as ghcr.io/org/app, without scheme, tag or digest", s)
	}
	return nil
}
