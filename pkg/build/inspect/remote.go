package inspect

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// RemoteError is returned for a kustomization that references a repository or URL on a host that is
// not allowed.
type RemoteError struct {
	// File is the file that contains Address, or "" if it is not known.
	File, Address string
	// Host is the host to allow, or "" if the address can never be allowed.
	Host string
}

func (e *RemoteError) Error() string {
	address := redact.Text(withoutUser(e.Address))
	if e.Host == "" {
		return fmt.Sprintf("%s refers to %s, which is not supported: use a path in the source, or an https:// address", e.File, address)
	}
	return fmt.Sprintf("%s refers to %s: remote bases are not allowed", e.File, address)
}

// withoutUser returns an address without credentials.
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

// userAt matches the start of addresses such as git@host:path.
var userAt = lazy.Regexp(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// remoteHost reports whether kustomize would access the network for an entry of a kustomization, and
// returns the host. The host of ssh and file addresses is "", because they are never allowed.
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
	return "", userAt().MatchString(lower)
}

// Remote returns an error for a kustomization with entries on hosts that are not allowed.
func Remote(name string, text []byte, allows func(host string) bool) error {
	for _, entry := range References(name, text) {
		if host, remote := remoteHost(entry); remote && (host == "" || !allows(host)) {
			return &RemoteError{File: name, Address: entry, Host: host}
		}
	}
	return nil
}

// References returns the files, directories and addresses that a kustomization refers to.
func References(name string, text []byte) []string {
	var k any
	if budget.Unmarshal(name, text, &k) != nil {
		return nil // kustomize reports the error
	}
	return referring(k, nil)
}

// naming lists the fields of a kustomization with files and directories. They are in lower case because
// kustomize ignores case.
var naming = map[string]bool{
	"resources": true, "bases": true, "components": true, "crds": true, "configurations": true, "generators": true,
	"transformers": true, "validators": true, "path": true, "patchesstrategicmerge": true, "files": true, "envs": true,
	"env": true, "repo": true, "chartrepourl": true, "valuesfile": true, "additionalvaluesfiles": true,
}

// plainText lists the fields with arbitrary values.
var plainText = map[string]bool{
	"metadata": true, "commonannotations": true, "commonlabels": true, "labels": true, "annotations": true, "generatoroptions": true,
	"options": true, "literals": true, "images": true, "valuesinline": true,
}

// referring returns the strings in the fields that name files, at any depth.
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

// texting returns a string or the strings of a list, and also the file of a generator entry key=file.
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
