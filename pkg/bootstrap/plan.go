// Package bootstrap installs Flux on a cluster from a Git repository: it
// commits the manifests of the controllers and of the GitRepository and
// Kustomization that sync the cluster, applies them, and waits until the
// cluster has applied the commit. [Run] is a list of named steps. Each step is
// idempotent, so that a second run resumes an interrupted one.
package bootstrap

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Plan configures a bootstrap.
type Plan struct {
	// Host is the Git host of the repository.
	Host githost.Host
	// Branch is the branch that bootstrap commits to and the cluster syncs from.
	Branch string
	// Path is the directory of the cluster in the repository, "" for its root.
	Path string
	// Components are the manifests of the controllers.
	Components *manifests.Set
	// Commit configures the commits.
	Commit Commit
	// Sync configures the GitRepository of the cluster.
	Sync Sync
	// TokenAuth stores the password or token of the host's Access in the source
	// Secret instead of Key.
	TokenAuth bool
	// DeployToken stores a token in the source Secret that the host creates for
	// the cluster; Host must be a githost.Tokener.
	DeployToken bool
	// RotateKey replaces the deploy key or deploy token of the cluster even if
	// it works.
	RotateKey bool
	// ChangeRequest commits to a separate branch and opens a pull request; Host
	// must be a githost.Requester. Nothing is applied to the cluster until
	// the request is merged and bootstrap runs again.
	ChangeRequest bool
	// Key is the SSH key with which the cluster reads the repository.
	Key Key
	// PullSecret is the Secret with the credentials of a private registry in
	// stringData, nil for none.
	PullSecret *unstructured.Unstructured
	// Force takes ownership of a Flux installation that another tool manages.
	Force bool
	// Now is the clock.
	Now func() time.Time
}

// Commit configures the commits.
type Commit struct {
	AuthorName, AuthorEmail string
	// Appendix is added to each message.
	Appendix string
	// Sign returns the signature of a commit; nil leaves commits unsigned.
	Sign func(commit []byte) (string, error)
}

// Sync configures the GitRepository of the cluster.
type Sync struct {
	// Interval is the interval at which it checks for new commits.
	Interval time.Duration
	// SecretName is the name of the Secret with the Git credentials.
	SecretName string
	// RecurseSubmodules also fetches submodules.
	RecurseSubmodules bool
	// SparseCheckout lists the directories to fetch; nil for all.
	SparseCheckout []string
}

// Key is an SSH key to use, or the parameters of one to generate.
type Key struct {
	// Private is the private key to use, nil to generate one.
	Private []byte
	// Passphrase decrypts Private; it is stored in the source Secret too.
	Passphrase string
	// Algorithm is "rsa", "ecdsa" or "ed25519", for a generated key.
	Algorithm string
	// Bits is the size of an RSA key, and Curve the curve of an ECDSA key.
	Bits  int
	Curve string
	// KnownHostsFile is the user's known_hosts file. Servers whose key differs
	// from the one in the file are rejected. The file may be missing.
	KnownHostsFile string
	// HostKeysFile is a known_hosts file with the only trusted host keys, ""
	// for none.
	HostKeysFile string
	// Trust confirms the host key of an unknown server; nil trusts it on first
	// use.
	Trust func(ctx context.Context, key ServerKey) error
	// HostKeyAlgorithms lists the host key types to request, in order of preference; nil for all.
	HostKeyAlgorithms []string
}

// Progress receives the progress of a run.
type Progress interface {
	Action(format string, args ...any)
	Waiting(format string, args ...any)
	Success(format string, args ...any)
	Warning(format string, args ...any)
	// Step is called at the start of a step, and the returned function at its
	// end. Waits is set for steps that wait for controllers.
	Step(name string, waits bool) (end func())
}

// UnreadyError is returned when the GitRepository or Kustomization of the
// cluster does not become ready.
type UnreadyError struct {
	Kind, Namespace, Name string
	// Object is the last observed state of the object, nil if it was never observed.
	Object controllers.Object
	// Message is the reason, from the Ready condition.
	Message string
	// Err is the context error if the wait was canceled or timed out, nil otherwise.
	Err error
}

func (e *UnreadyError) Error() string {
	return fmt.Sprintf("%s %s/%s %s", e.Kind, e.Namespace, e.Name, e.Message)
}

// Unwrap returns Err.
func (e *UnreadyError) Unwrap() error { return e.Err }

var branchName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s~^:?*\[\\\x00-\x1f\x7f]+$`) })

// validate returns an error if a field of the plan is invalid.
func (p Plan) validate() error {
	if !branchName().MatchString(p.Branch) || strings.Contains(p.Branch, "..") || strings.HasPrefix(p.Branch, "-") ||
		strings.HasPrefix(p.Branch, "/") || strings.HasSuffix(p.Branch, "/") || strings.HasSuffix(p.Branch, ".lock") {
		return hint.Errorf("set a branch such as --branch=main", "invalid branch name %q", p.Branch)
	}
	if _, err := CleanPath(p.Path); err != nil {
		return err
	}
	if _, ok := p.Host.(githost.Tokener); p.DeployToken && !ok {
		return hint.Errorf("store your own token with --token-auth, or use a deploy key", "deploy tokens are not supported for this Git host")
	}
	if _, ok := p.Host.(githost.Requester); p.ChangeRequest && !ok {
		return errNoRequests
	}
	if problems := validation.IsDNS1123Subdomain(p.Sync.SecretName); len(problems) > 0 {
		return fmt.Errorf("invalid secret name %q: %s", p.Sync.SecretName, problems[0])
	}
	if p.Sync.Interval <= 0 {
		return hint.Errorf("set a positive interval, such as --interval=1m", "invalid interval %s: must be positive", p.Sync.Interval)
	}
	if folder, ok := p.sparse(); !ok {
		return hint.Errorf("add it to --sparse-checkout", "path %q is not part of the sparse checkout: the cluster would not fetch its own manifests", folder)
	}
	return nil
}

// bySSH reports whether the cluster reads the repository with an SSH key.
func (p Plan) bySSH() bool { return !p.TokenAuth && !p.DeployToken }

// namespace returns the namespace of Flux, which is also the name of its
// GitRepository and Kustomization.
func (p Plan) namespace() string { return p.Components.Namespace }

// folder returns the path of the manifests in the repository.
func (p Plan) folder() string { return path.Join(p.Path, p.namespace()) }

// keyTitle returns the title of the deploy key or token on the host. It is the
// same title as in Flux 2, so that another bootstrap of the cluster replaces the
// old key.
func (p Plan) keyTitle() string {
	return strings.Join([]string{p.namespace(), p.Branch, p.Sync.SecretName, "./" + p.Path}, "-")
}

// requestBranch returns the head branch of the pull request. It is the same in
// each run, so that an open request is found again.
func (p Plan) requestBranch() string { return path.Join("flux/bootstrap", p.Path) }

// sparse returns the cluster's directory and reports whether the sparse checkout includes it.
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

// CleanPath returns the path of a directory in a repository without leading and
// trailing slashes, "" for the root. It returns an error for a path outside the
// repository.
func CleanPath(p string) (string, error) {
	slashed := strings.ReplaceAll(p, `\`, "/")
	clean := path.Clean("/" + slashed)[1:]
	for _, part := range strings.Split(slashed, "/") {
		if part == ".." {
			return "", hint.Errorf("set a path in the repository such as --path=clusters/production", "path %q is outside the repository", p)
		}
		if strings.EqualFold(part, ".git") {
			return "", hint.Errorf("set another path such as --path=clusters/production", "path %q is reserved by Git", p)
		}
	}
	return clean, nil
}
