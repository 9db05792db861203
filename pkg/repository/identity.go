package repository

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Identity identifies the GitRepositories that refer to a repository at one of its revisions.
type Identity struct {
	// Remotes lists the addresses of the repository, as returned by git.ComparableAddress.
	Remotes []string
	// Own is the source of the cluster's directory, or nil if the repository does not contain it.
	Own *unstructured.Unstructured
	// Branches lists the branches whose head is the revision, if the repository does not contain the source of
	// the cluster's directory. Without branches, every reference resolves to the revision.
	Branches []string
}

// Local reports whether an address belongs to the repository.
func (i Identity) Local(address string) bool {
	address = git.ComparableAddress(address)
	return slices.Contains(i.Remotes, address) || i.Own != nil && git.ComparableAddress(text(i.Own, "spec", "url")) == address
}

// Follows reports whether a reference resolves to the revision.
func (i Identity) Follows(reference controllers.GitReference) bool {
	if i.Own != nil && i.Own.GetKind() == controllers.GitRepository {
		return controllers.GitReferenceOf(i.Own.Object) == reference
	}
	return len(i.Branches) == 0 || slices.ContainsFunc(i.Branches, func(branch string) bool { return reference == controllers.GitReference{Branch: branch} })
}

// Is reports whether a GitRepository refers to the repository at the revision.
func (i Identity) Is(o *unstructured.Unstructured) bool {
	return i.Local(text(o, "spec", "url")) && i.Follows(controllers.GitReferenceOf(o.Object))
}

func text(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}
