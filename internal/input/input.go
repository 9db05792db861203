// Package input reads what users type for the fields of objects: names,
// references, addresses, labels, version ranges. What is wrong is said in the
// words of the field, so that it never comes to the server.
package input

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Name refuses what cannot be the name of an object of Flux, a label of RFC 1123.
func Name(s string) error {
	if len(validation.IsDNS1123Label(s)) > 0 {
		return fmt.Errorf("name %q is invalid: a name has up to 63 lower-case letters, digits and '-' (RFC 1123) and begins and ends with a letter or digit", s)
	}
	return nil
}

// ObjectName refuses what cannot be the name of an object of Kubernetes, which
// may have dots.
func ObjectName(s string) error {
	if len(validation.IsDNS1123Subdomain(s)) > 0 {
		return fmt.Errorf("%q is no name: it has lower-case letters, digits, '-' and '.' (RFC 1123) and begins and ends with a letter or digit", s)
	}
	return nil
}

// Labels reads key=value pairs.
func Labels(pairs []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("label %q has to be of the form key=value", pair)
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("label %q: the key %s", pair, problems[0])
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, fmt.Errorf("label %q: the value %s", pair, problems[0])
		}
		if before, twice := labels[key]; twice && before != value {
			return nil, fmt.Errorf("label %q is given twice, as %q and %q", key, before, value)
		}
		labels[key] = value
	}
	return labels, nil
}

// URL reads an address whose scheme is one of several.
func URL(s string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(s)
	if user, path, scp := strings.Cut(s, ":"); err != nil && scp && strings.Contains(user, "@") && slices.Contains(schemes, "ssh") {
		return nil, fmt.Errorf("it is not a URL: write ssh://%s/%s", user, strings.TrimPrefix(path, "/"))
	}
	if err != nil {
		// The error of the parser repeats the address, which may hold a password.
		return nil, errors.New("it is not a URL")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("scheme %q is not supported, it has to be one of %s", u.Scheme, strings.Join(schemes, ", "))
	}
	if u.Hostname() == "" {
		return nil, errors.New("it names no host")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("it has a password in it, which everybody who reads the object would see")
	}
	return u, nil
}

// Range refuses what is no range of semantic versions, such as ">=1.0.0 <2.0.0".
func Range(s string) error {
	if _, err := semver.NewConstraint(s); err != nil {
		return fmt.Errorf("%q is no range of semantic versions, such as '>=1.0.0 <2.0.0' or '6.x'", s)
	}
	return nil
}

// Path cleans a path within a source, "./" first; it may not lead out of it.
func Path(s string) (string, error) {
	if strings.ContainsRune(s, 0) {
		return "", errors.New("a path has no zero bytes")
	}
	clean := path.Clean("./" + strings.TrimLeft(strings.ReplaceAll(s, `\`, "/"), "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("path %q leads out of the source", s)
	}
	if clean == "." {
		return "./", nil
	}
	return "./" + clean, nil
}

// LayerOperations are what source-controller can do with a layer.
var LayerOperations = []string{"extract", "copy"}

// Layer selects a layer of an OCI artifact and what is done with it.
type Layer struct{ MediaType, Operation string }

// mediaType is the grammar of media types (RFC 6838, section 4.2). None of them
// has a colon.
var mediaType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$`)

// ParseLayer parses a layer selector, MEDIATYPE:OPERATION or MEDIATYPE alone.
func ParseLayer(s string) (Layer, error) {
	media, operation, found := strings.Cut(s, ":")
	switch {
	case !mediaType.MatchString(media):
		return Layer{}, fmt.Errorf("invalid layer selector %q: %q is not a media type: must be MEDIATYPE:OPERATION, such as application/vnd.cncf.flux.content.v1.tar+gzip:extract", s, media)
	case found && !slices.Contains(LayerOperations, operation):
		return Layer{}, fmt.Errorf("invalid layer selector %q: operation %q must be one of %s", s, operation, strings.Join(LayerOperations, ", "))
	}
	return Layer{MediaType: media, Operation: operation}, nil
}

// repository is the grammar of the names of image repositories, host and port
// included, without tag or digest (distribution specification).
var repository = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// Image refuses what is no image repository.
func Image(s string) error {
	last := s[strings.LastIndex(s, "/")+1:]
	if !repository.MatchString(s) || strings.Contains(s, "/") && strings.Contains(last, ":") {
		return fmt.Errorf("%q is no image repository, such as ghcr.io/org/app: it has no scheme, tag or digest", s)
	}
	return nil
}
