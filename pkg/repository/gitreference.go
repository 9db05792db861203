package repository

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// defaultBranch is the branch of a GitRepository without spec.ref in source-controller.
const defaultBranch = "master"

// GitReferenceOf returns the reference of a GitRepository with the precedence of source-controller.
func GitReferenceOf(o *unstructured.Unstructured) GitReference {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(o.Object, "spec", "ref", name)
		return value
	}
	switch {
	case field("commit") != "":
		return GitReference{Commit: field("commit")}
	case field("name") != "":
		return named(field("name"))
	case field("semver") != "":
		return GitReference{SemVer: field("semver")}
	case field("tag") != "":
		return GitReference{Tag: field("tag")}
	case field("branch") != "":
		return GitReference{Branch: field("branch")}
	}
	return GitReference{Branch: defaultBranch}
}

// named returns the branch or tag of a full reference name.
func named(name string) GitReference {
	if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
		return GitReference{Branch: branch}
	}
	if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
		return GitReference{Tag: tag}
	}
	return GitReference{Name: name}
}
