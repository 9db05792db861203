// Package bootstrap puts Flux on a cluster out of a Git repository: it commits
// the manifests of the controllers and of their own synchronisation, installs
// them and waits until the cluster follows the repository. [Run] is a list of
// named steps; each finds out what is missing and does only that, so running
// it again finishes what was interrupted and changes nothing that is right.
package bootstrap

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Plan is what to bootstrap.
type Plan struct {
	// Host is where the repository lives.
	Host githost.Host
	// Branch is the branch to commit to and to follow.
	Branch string
	// Path is the folder of the cluster in the repository, "" for its root.
	Path string
	// Components are the manifests of the controllers.
	Components *manifests.Set
	// Commit is how commits look.
	Commit Commit
	// Sync is how the cluster follows the repository.
	Sync Sync
	// TokenAuth lets the cluster use the password or token of the host's
	// Access; without it the cluster uses Key.
	TokenAuth bool
	// DeployToken lets the cluster use a token over HTTP that the host makes
	// for it alone; the host has to be a githost.Tokener.
	DeployToken bool
	// RotateKey gives the cluster a new key or deploy token, though the present
	// one works.
	RotateKey bool
	// ChangeRequest commits to a branch of its own and asks for it to be
	// merged; the host has to be a githost.Requester. Until it is merged
	// nothing happens on the cluster.
	ChangeRequest bool
	// Key is the key that the cluster reads the repository with over SSH.
	Key Key
	// PullSecret is the Secret with the credentials of a private registry, its
	// contents in stringData; nil where there is none.
	PullSecret *unstructured.Unstructured
	// Force takes over a Flux that something else manages.
	Force bool
	// Now is the clock.
	Now func() time.Time
}

// Commit is how commits look.
type Commit struct {
	AuthorName, AuthorEmail string
	// Appendix is added to each message.
	Appendix string
	// Sign returns the signature of a commit; nil leaves commits unsigned.
	Sign func(commit []byte) (string, error)
}

// Sync is how the cluster follows the repository.
type Sync struct {
	// Interval is how often it looks for new commits.
	Interval time.Duration
	// SecretName is the name of the Secret that opens the repository.
	SecretName string
	// RecurseSubmodules fetches submodules too.
	RecurseSubmodules bool
	// SparseCheckout names the only folders that are fetched.
	SparseCheckout []string
}

// Key is an SSH key: one that is given, or how to make one.
type Key struct {
	// Private is the given key, nil where one is to be made.
	Private []byte
	// Passphrase unlocks Private; the cluster gets it too.
	Passphrase string
	// Algorithm is "rsa", "ecdsa" or "ed25519", for a key to be made.
	Algorithm string
	// Bits is the size of an RSA key, Curve that of an ECDSA key.
	Bits  int
	Curve string
	// KnownHostsFile is a known_hosts file of the user: a server that shows
	// another key than it has is not trusted. It may be missing.
	KnownHostsFile string
	// HostKeysFile is a known_hosts file that alone says which servers are
	// trusted, "" for none.
	HostKeysFile string
	// Trust asks whether the key of a server that nobody vouches for is the
	// right one; nil shows it and goes on.
	Trust func(ctx context.Context, key ServerKey) error
	// HostKeyAlgorithms are the types of host keys to ask a server for, in
	// order of preference; nil for all.
	HostKeyAlgorithms []string
}

// Progress is told what happens.
type Progress interface {
	Action(format string, args ...any)
	Waiting(format string, args ...any)
	Success(format string, args ...any)
	Warning(format string, args ...any)
	// Step is called when a step begins; what it returns, when it ends.
	// Steps that wait for the cluster's controllers say so.
	Step(name string, waits bool) (end func())
}

// Error is a failure with the way out.
type Error struct {
	Err error
	// Hint is the way out.
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Error) Unwrap() error { return e.Err }

func failure(hint, format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...), hint}
}

// UnreadyError says that an object by which the cluster follows the repository
// is not ready.
type UnreadyError struct {
	Kind, Namespace, Name string
	// Object is how it was seen last, nil where it was not.
	Object controllers.Object
	// Message says what is wrong with it.
	Message string
	// Err is what ended the wait where it was not the object: the end of the
	// context; nil otherwise.
	Err error
}

func (e *UnreadyError) Error() string {
	return fmt.Sprintf("%s %s/%s %s", e.Kind, e.Namespace, e.Name, e.Message)
}

// Unwrap returns what ended the wait.
func (e *UnreadyError) Unwrap() error { return e.Err }

var branchName = regexp.MustCompile(`^[^\s~^:?*\[\\\x00-\x1f\x7f]+$`)

// validate returns what is wrong with a plan.
func (p Plan) validate() error {
	if !branchName.MatchString(p.Branch) || strings.Contains(p.Branch, "..") || strings.HasPrefix(p.Branch, "-") ||
		strings.HasPrefix(p.Branch, "/") || strings.HasSuffix(p.Branch, "/") || strings.HasSuffix(p.Branch, ".lock") {
		return failure("name it with --branch, as in --branch=main", "invalid branch name %q", p.Branch)
	}
	if _, err := CleanPath(p.Path); err != nil {
		return err
	}
	if _, ok := p.Host.(githost.Tokener); p.DeployToken && !ok {
		return failure("let the cluster use your token with --token-auth, or a key without either", "this Git host makes no deploy tokens")
	}
	if _, ok := p.Host.(githost.Requester); p.ChangeRequest && !ok {
		return errNoRequests
	}
	if problems := validation.IsDNS1123Subdomain(p.Sync.SecretName); len(problems) > 0 {
		return fmt.Errorf("invalid secret name %q: %s", p.Sync.SecretName, problems[0])
	}
	if p.Sync.Interval <= 0 {
		return failure("give one such as --interval=1m", "invalid interval %s", p.Sync.Interval)
	}
	if folder, ok := p.sparse(); !ok {
		return failure("add it to --sparse-checkout", "the cluster would not fetch its own folder %q: it is not among the folders of the sparse checkout", folder)
	}
	return nil
}

// bySSH tells whether the cluster reads the repository with a key.
func (p Plan) bySSH() bool { return !p.TokenAuth && !p.DeployToken }

// sparse tells whether the folder of the cluster is among those that are fetched.
func (p Plan) sparse() (string, bool) {
	folder, err := CleanPath(p.Path)
	if len(p.Sync.SparseCheckout) == 0 || err != nil {
		return folder, true
	}
	for _, listed := range p.Sync.SparseCheckout {
		top, err := CleanPath(listed)
		if err == nil && (top == "" || folder == top || strings.HasPrefix(folder, top+"/")) {
			return folder, true
		}
	}
	return folder, false
}

// CleanPath returns the path of a folder within a repository without a slash
// before or behind it, "" for the root. It refuses one that leads out.
func CleanPath(p string) (string, error) {
	slashed := strings.ReplaceAll(p, `\`, "/")
	clean := path.Clean("/" + slashed)[1:]
	for _, part := range strings.Split(slashed, "/") {
		if part == ".." {
			return "", failure("name a folder of the repository, as in --path=clusters/production", "path %q leads out of the repository", p)
		}
		if strings.EqualFold(part, ".git") {
			return "", failure("name another folder, as in --path=clusters/production", "path %q is Git's own", p)
		}
	}
	return clean, nil
}
