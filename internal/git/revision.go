package git

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/budget"
)

// Revision selects a commit of a repository. Only one field is set, except that Commit may be combined with the Name
// of its branch or tag.
type Revision struct {
	Branch, Tag string
	// SemVer is a version range. It selects the tag with the highest matching version.
	SemVer string
	// Name is a reference such as refs/pull/1/head, a branch, a tag, an abbreviated commit ID or, in a clone, any other
	// revision syntax of git.
	Name string
	// Commit is a commit ID.
	Commit string
}

// ParseRevision parses a name, a full commit ID, or a Flux revision such as main@sha1:….
func ParseRevision(text string) Revision {
	name, commit, ok := strings.Cut("@"+text, "@sha1:")
	if !ok {
		name, commit = "", text
	}
	if !plumbing.IsHash(commit) {
		return Revision{Name: text}
	}
	return Revision{Name: strings.TrimPrefix(name, "@"), Commit: strings.ToLower(commit)}
}

// String returns the revision for messages.
func (r Revision) String() string {
	if r.Commit != "" && r.Name != "" {
		return r.Flux()
	}
	return r.Branch + r.Tag + r.SemVer + r.Name + r.Commit
}

// Flux returns the revision of a commit as Flux writes it: main@sha1:…, or sha1:… without a name.
func (r Revision) Flux() string { return strings.TrimPrefix(r.Name+"@sha1:"+r.Commit, "@") }

// IsHex reports whether a text consists of hexadecimal digits.
func IsHex(text string) bool {
	_, err := hex.DecodeString(text + text)
	return err == nil && text != ""
}

// NewestTag returns the tag with the highest version in a range, "" if no tag matches. Like source-controller, it
// requires versions with three parts.
func NewestTag(tags []string, versions string) (string, error) {
	wanted, err := budget.Range(versions)
	if err != nil {
		return "", fmt.Errorf("invalid semver range %.80q: %w", versions, err)
	}
	var newest *semver.Version
	for _, tag := range tags {
		version, err := semver.NewVersion(tag)
		if err == nil && strings.Count(tag, ".") >= 2 && wanted.Check(version) && (newest == nil || version.GreaterThan(newest)) {
			newest = version
		}
	}
	if newest == nil {
		return "", nil
	}
	return newest.Original(), nil
}

// ComparableAddress returns the address of a repository without the parts that depend on the protocol: it is the same
// for ssh://git@example.com/a/b.git and git@example.com:a/b.
func ComparableAddress(address string) string {
	_, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		rest = strings.Replace(address, ":", "/", 1)
	}
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndex(host, "@")+1:]
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host) + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// OtherOwner reports whether an artifact belongs to another owner than all remotes, which are in comparable form. Only the registries of
// GitHub and GitLab have the owners of their Git hosts; with a remote on another host, the owner is unknown.
func OtherOwner(address string, remotes []string) bool {
	registry, inside, _ := strings.Cut(ComparableAddress(address), "/")
	host := map[string]string{"ghcr.io": "github.com", "registry.gitlab.com": "gitlab.com"}[registry]
	owner, _, _ := strings.Cut(inside, "/")
	return host != "" && len(remotes) > 0 && !slices.ContainsFunc(remotes, func(remote string) bool {
		rest, same := strings.CutPrefix(remote, host+"/")
		remoteOwner, _, _ := strings.Cut(rest, "/")
		return !same || strings.EqualFold(remoteOwner, owner)
	})
}
