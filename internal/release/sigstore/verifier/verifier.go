// Package verifier verifies signatures with the Sigstore library. Only the helper program links it.
package verifier

import (
	"bytes"
	"context"
	"errors"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/release/sigstore"
)

// TUFRepository is a TUF repository with the trusted root.
type TUFRepository struct {
	// URL is the address of the repository, and Root the content of its first root.json.
	URL  string
	Root []byte
}

// Public returns the repository of the public Sigstore instance, whose root.json is embedded in the library.
func Public() TUFRepository { return TUFRepository{tuf.DefaultMirror, tuf.DefaultRoot()} }

// Verify verifies a signature with the trusted root of the repository.
func (t TUFRepository) Verify(ctx context.Context, r sigstore.Request) (struct{}, error) {
	step, err := t.verify(ctx, r)
	if err != nil {
		err = &helper.Error{Step: string(step), Text: err.Error()}
	}
	return struct{}{}, err
}

// verify returns the step that failed with its error.
func (t TUFRepository) verify(ctx context.Context, r sigstore.Request) (sigstore.Step, error) {
	signed, err := parse(r.Bundle)
	if err != nil {
		return sigstore.ReadBundle, err
	}
	trusted, err := t.trustedRoot(ctx, r)
	if err != nil {
		return sigstore.ReadRoot, err
	}
	return check(signed, trusted, r)
}

// check returns the step that failed with its error. The certificate must be in a certificate transparency log and
// the signature in a transparency log, so that the owner of the identity can detect both. The log or a timestamp
// authority must confirm that the signature was created while the certificate was valid.
func check(signed *bundle.Bundle, trusted *root.TrustedRoot, r sigstore.Request) (sigstore.Step, error) {
	verifier, err := verify.NewVerifier(trusted, verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	if err != nil {
		return sigstore.CheckSignature, err
	}
	identity, err := identityOf(r.Identity)
	if err != nil {
		return sigstore.CheckIdentity, err
	}
	_, err = verifier.Verify(signed, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(r.File)), verify.WithCertificateIdentity(identity)))
	var other *verify.ErrNoMatchingCertificateIdentity
	if errors.As(err, &other) {
		return sigstore.CheckIdentity, difference(other)
	}
	return sigstore.CheckSignature, err
}

// parse returns a bundle with the signature of a file. Other bundles, which contain arbitrary
// statements about files, are rejected.
func parse(text []byte) (*bundle.Bundle, error) {
	signed := &bundle.Bundle{}
	if err := signed.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if signed.GetMessageSignature() == nil {
		return nil, errors.New("the bundle contains no file signature")
	}
	return signed, nil
}

func identityOf(i sigstore.Identity) (verify.CertificateIdentity, error) {
	subject, err := verify.NewSANMatcher(i.Subject, "")
	if err != nil {
		return verify.CertificateIdentity{}, err
	}
	issuer, err := verify.NewIssuerMatcher(i.Issuer, "")
	if err != nil {
		return verify.CertificateIdentity{}, err
	}
	return verify.NewCertificateIdentity(subject, issuer, certificate.Extensions{SourceRepositoryURI: i.Repository, SourceRepositoryRef: i.Ref})
}

// difference describes the difference between two identities.
func difference(err *verify.ErrNoMatchingCertificateIdentity) error {
	var value *verify.ErrValueMismatch
	var extension *certificate.ErrCompareExtensions
	switch {
	case errors.As(err, &value):
		return value
	case errors.As(err, &extension):
		return extension
	}
	return err
}

// trustedRoot returns the Sigstore keys and certificates.
func (t TUFRepository) trustedRoot(ctx context.Context, r sigstore.Request) (*root.TrustedRoot, error) {
	if len(r.TrustedRoot) > 0 {
		return root.NewTrustedRootFromJSON(r.TrustedRoot)
	}
	client, err := tuf.New(&tuf.Options{
		RepositoryBaseURL: t.URL, Root: t.Root, Fetcher: newFetcher(ctx, r.Agent), CachePath: r.Cache, CacheValidity: cacheDays, Context: ctx,
	})
	if err != nil {
		return nil, err
	}
	return root.GetTrustedRoot(client)
}
