// Package githost is the table of Git hosts that bootstrap knows: each row
// says how a repository is made and reached and lets a cluster read it. A new
// host is one file with a type that implements [Host]; what hosts with an API
// have in common is [Hosted].
package githost

import (
	"context"
	"time"
)

// Host is where a repository lives.
type Host interface {
	// Survey finds out how the repository is and what would keep Ensure,
	// DeployKey or a push from working: an invalid token, a missing scope, a
	// name that is taken. It changes nothing.
	Survey(ctx context.Context, want Want) (Survey, error)
	// Ensure makes what Survey found missing and returns the repository.
	// Nothing is changed where it is right.
	Ensure(ctx context.Context) (Repository, error)
	// DeployKey lets the holder of a key read the repository. A key of the
	// same title that is another one, or has other rights, is replaced, the
	// new one first; a key that is right stays. With KeepOthers the key is
	// only added; a host on which titles are unique may change the others'.
	DeployKey(ctx context.Context, key DeployKey) error
}

// Preparer is a Host that has to ask somebody to give a deploy key access, and
// can tell before anything is changed that nobody would answer.
type Preparer interface {
	// CanDeployKey returns why DeployKey would fail, nil where it would not.
	CanDeployKey() error
}

// Requester is a Host with change requests (pull requests, merge requests).
type Requester interface {
	// RequestChange opens a change request, or returns the one that is open
	// from the same branch to the same branch.
	RequestChange(ctx context.Context, change Change) (Request, error)
}

// Tokener is a Host that can make a token which only reads one repository.
type Tokener interface {
	// DeployToken makes such a token, and takes away an earlier one of the
	// same title, whose contents nobody can read any more.
	DeployToken(ctx context.Context, title string) (username, token string, err error)
}

// Want is what bootstrap is going to ask of a host.
type Want struct {
	// Branch is the branch to commit to and to follow.
	Branch string
	// KeyTitle is the title of the deploy key, "" where none will be added.
	KeyTitle string
	// ChangeRequest says that the branch is changed by a change request.
	ChangeRequest bool
	// DeployToken says that a deploy token will be made.
	DeployToken bool
}

// Survey is what a host says before anything is changed.
type Survey struct {
	// Repository is the repository as it is, or as Ensure is going to make it.
	Repository Repository
	// Exists says that the repository is there.
	Exists bool
	// Changes are what Ensure is going to do, in words that follow "would":
	// "create the private repository acme/fleet".
	Changes []string
	// Protected is why the host would refuse a push to the branch, "" where it
	// would not or does not say.
	Protected string
	// Account is whom authenticated as, "" where nobody knows.
	Account string
	// Expires is when the token does, zero where it never does or nobody knows.
	Expires time.Time
}

// Repository is a repository as its host has it.
type Repository struct {
	// Access is how it is opened from where bootstrap runs.
	Access Access
	// SyncURL is the address at which the cluster fetches it.
	SyncURL string
	// DefaultBranch is the branch that a clone shows first, "" where nobody
	// knows.
	DefaultBranch string
}

// Access is an address and what proves who opens it. Over HTTP that is a user
// name and password or a bearer token; over SSH a private key or an agent.
type Access struct {
	// URL has no credentials in it, except the user name of SSH.
	URL string

	Username, Password string
	BearerToken        string
	// CABundle is trusted besides the system's certificates.
	CABundle []byte

	PrivateKey []byte
	// Passphrase unlocks PrivateKey.
	Passphrase string
	// AgentSocket is where an SSH agent listens; it is asked where there is no PrivateKey.
	AgentSocket string
}

// DeployKey is a key that is to read a repository.
type DeployKey struct {
	// Title names the key to people.
	Title string
	// Public is the key in the form of authorized_keys files.
	Public string
	// KeepOthers leaves other keys of the same title where they are: the
	// cluster fetches with one of them until it is seen to fetch with this one.
	// DeployKey is called again without it then.
	KeepOthers bool
}

// Change is a change that somebody is asked to merge.
type Change struct {
	// Head is the branch with the commits, Base the one to merge it into.
	Head, Base string
	// Title and Body are what people read; the body is Markdown.
	Title, Body string
}

// Request is a change request on its host.
type Request struct {
	// URL is where people read it.
	URL string
	// Number is what the host calls it, as in #12 or !12.
	Number int
	// Opened says that it was not there before.
	Opened bool
}
