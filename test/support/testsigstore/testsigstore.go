// Package testsigstore is a Sigstore for tests: a certificate authority, a certificate transparency log
// and a transparency log, which sign files as "cosign sign-blob" does, and their trusted root.
package testsigstore

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/fluxkit/flux/internal/release/sigstore"
)

// Sigstore issues certificates and log entries.
type Sigstore struct {
	authority, issuer *x509.Certificate
	issuerKey         *ecdsa.PrivateKey
	// log is the key of the transparency log, certificates the key of the certificate transparency log.
	log, certificates *ecdsa.PrivateKey
	// until is the end of the validity of the certificate authority.
	until time.Time
}

// Signature describes how a signature differs from a valid one.
type Signature struct {
	sigstore.Identity
	// At is the time of the signature, now if it is zero.
	At time.Time
	// Unlogged omits the log entry, Uncertified the log entry of the certificate.
	Unlogged, Uncertified bool
	// Late makes the log entry after the certificate has expired.
	Late bool
}

// New returns a Sigstore whose certificate authority is valid from a day ago until a time.
func New(until time.Time) (*Sigstore, error) {
	s := &Sigstore{until: until}
	var keys [4]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
	}
	s.issuerKey, s.log, s.certificates = keys[1], keys[2], keys[3]
	var err error
	if s.authority, err = s.authorityCertificate("root", nil, keys[0].Public(), keys[0]); err != nil {
		return nil, err
	}
	s.issuer, err = s.authorityCertificate("intermediate", s.authority, s.issuerKey.Public(), keys[0])
	return s, err
}

// begin is the start of all validity periods.
func begin() time.Time { return time.Now().Add(-24 * time.Hour) }

// TrustedRoot returns the content of trusted_root.json.
func (s *Sigstore) TrustedRoot() ([]byte, error) {
	ca := &root.FulcioCertificateAuthority{
		Root: s.authority, Intermediates: []*x509.Certificate{s.issuer}, ValidityPeriodStart: begin(), ValidityPeriodEnd: s.until, URI: "https://fulcio.test",
	}
	logs, err := transparencyLog("https://rekor.test", s.log)
	if err != nil {
		return nil, err
	}
	certificates, err := transparencyLog("https://ct.test", s.certificates)
	if err != nil {
		return nil, err
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{ca}, certificates, nil, logs)
	if err != nil {
		return nil, err
	}
	return trusted.MarshalJSON()
}

func transparencyLog(address string, key *ecdsa.PrivateKey) (map[string]*root.TransparencyLog, error) {
	id, err := logID(key)
	if err != nil {
		return nil, err
	}
	return map[string]*root.TransparencyLog{hex.EncodeToString(id): {
		BaseURL: address, ID: id, ValidityPeriodStart: begin(), HashFunc: crypto.SHA256, PublicKey: key.Public(), SignatureHashFunc: crypto.SHA256,
	}}, nil
}

// logID returns the ID of a log, the hash of its public key.
func logID(key *ecdsa.PrivateKey) ([]byte, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	sum := sha256.Sum256(public)
	return sum[:], err
}

// Sign returns the bundle of a file.
func (s *Sigstore) Sign(file []byte, with Signature) ([]byte, error) {
	if with.At.IsZero() {
		with.At = time.Now()
	}
	key, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, err
	}
	options := sign.BundleOptions{CertificateProvider: certificateProvider{s, with}, TransparencyLogs: []sign.Transparency{entries{s, with}}}
	if with.Unlogged {
		options.TransparencyLogs = nil
	}
	bundle, err := sign.Bundle(&sign.PlainData{Data: file}, key, options)
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(bundle)
}

// certificateProvider issues the certificate of a signature.
type certificateProvider struct {
	*Sigstore
	with Signature
}

// GetCertificate implements sign.CertificateProvider.
func (c certificateProvider) GetCertificate(_ context.Context, key sign.Keypair, _ *sign.CertificateProviderOptions) ([]byte, error) {
	return c.certificate(key.GetPublicKey(), c.with)
}

// entries adds signatures to the transparency log.
type entries struct {
	*Sigstore
	with Signature
}

// GetTransparencyLogEntry implements sign.Transparency.
func (e entries) GetTransparencyLogEntry(_ context.Context, certificate []byte, bundle *protobundle.Bundle) error {
	at := e.with.At
	if e.with.Late {
		at = at.Add(2 * lifetime)
	}
	entry, err := e.entry(certificate, bundle.GetMessageSignature(), at)
	bundle.VerificationMaterial.TlogEntries = append(bundle.VerificationMaterial.TlogEntries, entry)
	return err
}
