package controllers

import (
	"fmt"
	"strings"
)

// GitReference is the reference that a GitRepository follows. At most one field
// is set.
type GitReference struct {
	Branch, Tag, SemVer, Name, Commit string
}

// String returns the reference for messages.
func (r GitReference) String() string {
	for _, field := range []struct{ kind, value string }{
		{"branch", r.Branch}, {"tag", r.Tag}, {"semver", r.SemVer}, {"reference", r.Name}, {"commit", r.Commit},
	} {
		if field.value != "" {
			return fmt.Sprintf("%s %q", field.kind, field.value)
		}
	}
	return "no reference"
}

// GitReferenceOf returns the reference of a GitRepository with the precedence and the default of source-controller.
func GitReferenceOf(o Object) GitReference {
	field := func(name string) string { return Path{"spec.ref." + name}.String(o) }
	switch {
	case field("commit") != "":
		return GitReference{Commit: field("commit")}
	case field("name") != "":
		return referenceNamed(field("name"))
	case field("semver") != "":
		return GitReference{SemVer: field("semver")}
	case field("tag") != "":
		return GitReference{Tag: field("tag")}
	case field("branch") != "":
		return GitReference{Branch: field("branch")}
	}
	return GitReference{Branch: "master"}
}

// referenceNamed returns the branch or tag of a full reference name.
func referenceNamed(name string) GitReference {
	if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
		return GitReference{Branch: branch}
	}
	if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
		return GitReference{Tag: tag}
	}
	return GitReference{Name: name}
}
