// Package sigstore verifies that a file was signed by a workflow, with a Sigstore certificate for
// the workflow's identity and an entry in the transparency log. It uses the helper process, because
// the Sigstore libraries would slow down the start of every command.
package sigstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
)

// Job is the job that verifies a signature, and the argument of its process.
const Job helper.Call[Request, struct{}] = "verify-signature"

// RootMax is the maximum size of a trusted root.
const RootMax = 4 << 20

// Identity describes the signing workflow as in its certificate.
type Identity struct {
	// Issuer is the OIDC issuer of the token that the workflow exchanged for the certificate.
	Issuer string `json:"issuer"`
	// Subject is the URL of the workflow file with its Git reference.
	Subject string `json:"subject"`
	// Repository and Ref are the repository and the Git reference for which the workflow ran. They differ from the
	// ones in Subject if a workflow in another repository called this workflow.
	Repository string `json:"repository"`
	Ref        string `json:"ref"`
}

// Request is the input of Job.
type Request struct {
	File []byte `json:"file"`
	// Bundle contains the signature, the certificate and the log entry in the format of "cosign sign-blob --bundle".
	Bundle []byte `json:"bundle"`
	Identity
	// TrustedRoot is the content of trusted_root.json. If it is empty, the trusted root of the public
	// Sigstore instance is read with TUF.
	TrustedRoot []byte `json:"trustedRoot,omitempty"`
	// Cache is the directory where TUF caches metadata and the trusted root.
	Cache string `json:"cache,omitempty"`
	// Agent is the User-Agent of requests.
	Agent string `json:"agent,omitempty"`
}

// Step is the step of a verification that failed.
type Step string

const (
	// ReadRoot is the step that reads the trusted root.
	ReadRoot Step = "root"
	// ReadBundle is the step that parses the bundle.
	ReadBundle Step = "bundle"
	// CheckSignature is the step that verifies the signature, its certificate and its log entry.
	CheckSignature Step = "signature"
	// CheckIdentity is the step that compares the identity in the certificate.
	CheckIdentity Step = "identity"
)

// Error is returned for a signature that is invalid or cannot be verified.
type Error struct {
	Step   Step
	Detail string
	// Given is true if the request contains the trusted root.
	Given bool
}

func (e *Error) Error() string {
	switch e.Step {
	case ReadRoot:
		return "reading the Sigstore trusted root: " + e.Detail
	case ReadBundle:
		return "the signature is not a Sigstore bundle: " + e.Detail
	case CheckIdentity:
		return "signed by another identity: " + e.Detail
	default:
		return "invalid signature: " + e.Detail
	}
}

// remedy returns the hint for the user.
func (e *Error) remedy() string {
	switch {
	case e.Step == ReadRoot && e.Given:
		return "set --trusted-root to the Sigstore trusted_root.json file"
	case e.Step == ReadRoot:
		return "check the network connection and HTTPS_PROXY, or set --trusted-root to a copy of the Sigstore trusted_root.json file"
	case e.Step == CheckSignature && e.Given:
		return "check that the --trusted-root file is up to date; if it is, do not use the files and report it"
	default:
		return "do not use the files, and report it"
	}
}

// Verify verifies a signature in a helper process, which receives proxy settings and certificates for
// its requests, but no credentials. Its errors contain a hint.
func Verify(ctx context.Context, pool *helper.Pool, r Request) error {
	const title = "verifying the signature"
	p := helper.Shared(pool, string(Job), func() *helper.Process {
		return pool.Process("sigstore", pool.Named(helper.Network()...), string(Job))
	})
	_, err := Job.Do(ctx, p, title, r)
	var failed *helper.Error
	if errors.As(err, &failed) && failed.Step != "" {
		failure := &Error{Step(failed.Step), failed.Text, len(r.TrustedRoot) > 0}
		return hint.Errorf(failure.remedy(), "%w", failure)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	return nil
}
