// Package githost is the row of Git hosts that bootstrap knows: each says how
// a repository is reached and lets a cluster read it. A new host is one file
// with a type that implements [Host].
package githost

import "context"

// Host is where a repository lives.
type Host interface {
	// Repository returns the repository, which it may have to make first.
	// Nothing is changed where it is there.
	Repository(ctx context.Context) (Repository, error)
	// DeployKey lets the holder of a key read the repository.
	DeployKey(ctx context.Context, key DeployKey) error
}

// Preparer is a Host that can tell before anything is changed that a deploy
// key could not be given access.
type Preparer interface {
	// CanDeployKey returns why DeployKey would fail, nil where it would not.
	CanDeployKey() error
}

// Repository is a repository as its host has it.
type Repository struct {
	// Access is how it is opened from where bootstrap runs.
	Access Access
	// SyncURL is the address at which the cluster fetches it.
	SyncURL string
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
}
