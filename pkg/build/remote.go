package build

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/redact"
)

// RemoteError is returned for a kustomization that refers to another repository
// or an address on the network that it may not refer to.
type RemoteError struct {
	// File contains Address; it is "" if it is not known.
	File, Address string
	// Host is what would have to be allowed, "" where it never is.
	Host string
}

func (e *RemoteError) Error() string {
	address := redact.Text(withoutUser(e.Address))
	if e.Host == "" {
		return fmt.Sprintf("%s refers to %s, which is never read: use a path in the source, or an https:// address", e.File, address)
	}
	return fmt.Sprintf("%s refers to %s: remote bases are not allowed", e.File, address)
}

// withoutUser removes the credentials from an address.
func withoutUser(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return address
	}
	if query := strings.IndexByte(rest, '?'); query >= 0 {
		if values, err := url.ParseQuery(rest[query+1:]); err != nil || !values.Has("ref") || len(values) > 1 {
			rest = rest[:query]
		}
	}
	host, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	if slash {
		host += "/" + path
	}
	return scheme + "://" + host
}

// userAt begins addresses such as git@host:path.
var userAt = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// remoteHost returns the host that kustomize would ask for an entry of a
// kustomization, and whether it would. The host of ssh and file addresses is "",
// since they are never read.
func remoteHost(entry string) (host string, remote bool) {
	if strings.ContainsRune(entry, '\n') {
		return "", false // an inline document
	}
	lower := strings.ToLower(strings.TrimSpace(entry))
	lower = strings.TrimPrefix(lower, "git::")
	if rest, ok := strings.CutPrefix(lower, "github.com"); ok && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ":")) {
		return "github.com", true
	}
	scheme, rest, found := strings.Cut(lower, "://")
	switch {
	case found && (scheme == "http" || scheme == "https"):
		u, err := url.Parse(scheme + "://" + rest)
		if err != nil {
			return "", true
		}
		return u.Hostname(), true
	case found && (scheme == "ssh" || scheme == "file" || strings.Contains(scheme, "::") || !strings.ContainsAny(scheme, "/=")):
		return "", true
	}
	return "", userAt.MatchString(lower)
}

// checkRemote refuses a kustomization with entries of hosts that are not allowed.
func (f *files) checkRemote(name string, text []byte) error {
	var k any
	if budget.Unmarshal(name, text, &k) != nil {
		return nil // kustomize reports the error
	}
	for _, entry := range referring(k, nil) {
		host, remote := remoteHost(entry)
		if !remote || host != "" && f.elsewhere != nil && f.elsewhere.Allows(host) {
			continue
		}
		return &RemoteError{File: name, Address: entry, Host: host}
	}
	return nil
}

// naming are the fields of a kustomization, in lower case as kustomize does not
// mind, in which it looks for files and folders.
var naming = map[string]bool{ //nolint:gochecknoglobals // constant
	"resources": true, "bases": true, "components": true, "crds": true, "configurations": true, "generators": true,
	"transformers": true, "validators": true, "path": true, "patchesstrategicmerge": true, "files": true, "envs": true,
	"env": true, "repo": true, "chartrepourl": true, "valuesfile": true, "additionalvaluesfiles": true,
}

// plainText are the fields whose values are of the user's choice.
var plainText = map[string]bool{ //nolint:gochecknoglobals // constant
	"metadata": true, "commonannotations": true, "commonlabels": true, "labels": true, "annotations": true, "generatoroptions": true,
	"options": true, "literals": true, "images": true, "valuesinline": true,
}

// referring returns the texts in the fields that name files, wherever they are.
func referring(value any, found []string) []string {
	switch value := value.(type) {
	case map[string]any:
		for field, below := range value {
			field = strings.ToLower(field)
			if naming[field] {
				found = texting(below, found)
			}
			if !plainText[field] {
				found = referring(below, found)
			}
		}
	case []any:
		for _, below := range value {
			found = referring(below, found)
		}
	}
	return found
}

// texting returns a text, or those in a list. An entry of a generator can have
// a key before it.
func texting(value any, found []string) []string {
	switch value := value.(type) {
	case string:
		found = append(found, value)
		if key, file, keyed := strings.Cut(value, "="); keyed && !strings.ContainsAny(key, "/:") {
			found = append(found, file)
		}
	case []any:
		for _, item := range value {
			if text, ok := item.(string); ok {
				found = texting(text, found)
			}
		}
	}
	return found
}
