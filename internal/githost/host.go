// Package githost defines the Git hosts that bootstrap supports. A type that implements [Host] creates and updates
// the repository on a host and grants the cluster access to it. [Hosted] contains the configuration for hosts with an
// API.
package githost

import (
	"context"
	"time"
)

// Host is a Git host.
type Host interface {
	// Survey reads the state of the repository and returns an error for anything that would make Ensure, DeployKey or
	// a push fail, such as an invalid token or a missing scope. It makes no changes.
	Survey(ctx context.Context, want Want) (Survey, error)
	// Ensure makes the changes that Survey returned, and returns the repository.
	// It is idempotent, and requires a successful Survey.
	Ensure(ctx context.Context) (Repository, error)
	// DeployKey grants a key read access to the repository. It replaces a deploy key that has the same title but is a
	// different key or has different permissions, and adds the new key first. With KeepOthers, it only adds the key
	// and, on a host with unique titles, may rename the others.
	DeployKey(ctx context.Context, key DeployKey) error
}

// Preparer is a Host on which the user must grant the deploy key access.
type Preparer interface {
	// CanDeployKey returns an error if DeployKey would fail because the user
	// cannot be prompted.
	CanDeployKey() error
}

// Requester is a Host with pull requests or merge requests.
type Requester interface {
	// RequestChange opens a pull request, or returns an open pull request for the same branches.
	RequestChange(ctx context.Context, change Change) (Request, error)
}

// Opener is a Host with pull requests or merge requests that requires no Survey.
type Opener interface {
	// OpenRequest opens a pull request in an existing repository, or returns the open one of the same branches.
	OpenRequest(ctx context.Context, change Change) (Request, error)
}

// Tokener is a Host that can create tokens with read access to one repository.
type Tokener interface {
	// DeployToken creates a token. It revokes an earlier token with the same
	// title, because the value of a token cannot be read again.
	DeployToken(ctx context.Context, title string) (username, token string, err error)
}

// Want lists the features that a bootstrap uses.
type Want struct {
	// Branch is the branch that bootstrap commits to and the cluster syncs from.
	Branch string
	// KeyTitle is the title of the deploy key, "" for none.
	KeyTitle string
	// ChangeRequest is set if bootstrap changes the branch through a pull request.
	ChangeRequest bool
	// DeployToken is set if a deploy token is created.
	DeployToken bool
}

// Survey is the state of a repository on its host.
type Survey struct {
	// Repository is the existing repository or the repository that Ensure will create.
	Repository Repository
	// Exists reports whether the repository exists.
	Exists bool
	// Changes describes the changes that Ensure will make, as in "create the
	// private repository acme/fleet".
	Changes []string
	// Protected is the reason why the host would reject a push to the branch,
	// "" if none is known.
	Protected string
	// Account is the account of the token, "" if unknown.
	Account string
	// Expires is the expiration time of the token, zero if it does not expire or the time is unknown.
	Expires time.Time
}

// Repository is a repository on a host.
type Repository struct {
	// Access contains the URL and the credentials for bootstrap itself.
	Access Access
	// SyncURL is the URL of the GitRepository on the cluster.
	SyncURL string
	// DefaultBranch is the default branch, "" if unknown.
	DefaultBranch string
}

// Access is a URL with credentials: a user name and password or a bearer token
// over HTTP, a private key or an SSH agent over SSH.
type Access struct {
	// URL contains no credentials other than the SSH user name.
	URL string

	Username, Password string
	BearerToken        string
	// CABundle is trusted in addition to the system's CA certificates.
	CABundle []byte

	PrivateKey []byte
	// Passphrase decrypts PrivateKey.
	Passphrase string
	// AgentSocket is the socket of an SSH agent. It is used if PrivateKey is empty.
	AgentSocket string
}

// DeployKey is a public key with read access to a repository.
type DeployKey struct {
	// Title is the title of the key on the host.
	Title string
	// Public is the key in the format of authorized_keys files.
	Public string
	// KeepOthers keeps other keys with the same title, because the cluster uses one of them until it has fetched with
	// the new key. DeployKey is then called again without KeepOthers.
	KeepOthers bool
}

// Change is a pull request to open.
type Change struct {
	// Head is the branch with the commits, Base the branch to merge it into.
	Head, Base string
	// Title and Body are the description; Body is Markdown.
	Title, Body string
}

// Request is a pull request on its host.
type Request struct {
	// URL is the web page of the request.
	URL string
	// Number is the number of the request on the host, as in #12 or !12.
	Number int
	// Opened reports whether this call has opened the request.
	Opened bool
}
