package testsigstore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/url"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
)

// lifetime is the validity of the certificate of a signature.
const lifetime = 10 * time.Minute

// timestampList is the extension of a certificate with its entries in certificate transparency logs.
func timestampList() asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}
}

// authorityCertificate returns a certificate of the authority. Without a parent, it is self-signed.
func (s *Sigstore) authorityCertificate(name string, parent *x509.Certificate, key crypto.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"sigstore.test"}},
		NotBefore: begin(), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if parent == nil {
		parent, template.ExtKeyUsage = template, nil
	}
	return created(template, parent, key, by)
}

func created(template, parent *x509.Certificate, key crypto.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// certificate returns the certificate of a signature, like those that Fulcio issues to a workflow.
func (s *Sigstore) certificate(key crypto.PublicKey, with Signature) ([]byte, error) {
	subject, err := url.Parse(with.Subject)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: with.At, NotAfter: with.At.Add(lifetime), URIs: []*url.URL{subject},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	for _, e := range []struct {
		id    asn1.ObjectIdentifier
		value string
	}{
		{certificate.OIDIssuerV2, with.Issuer},
		{certificate.OIDBuildSignerURI, with.Subject},
		{certificate.OIDSourceRepositoryURI, with.Repository},
		{certificate.OIDSourceRepositoryRef, with.Ref},
	} {
		value, err := asn1.MarshalWithParams(e.value, "utf8")
		if err != nil {
			return nil, err
		}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: e.id, Value: value})
	}
	c, err := created(template, s.issuer, key, s.issuerKey)
	if err != nil || with.Uncertified {
		return c.Raw, err
	}
	list, err := s.timestamps(c, with.At)
	if err != nil {
		return nil, err
	}
	template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: timestampList(), Value: list})
	c, err = created(template, s.issuer, key, s.issuerKey)
	return c.Raw, err
}

// timestamps returns the extension with the entry of a certificate, which is without it, in the
// certificate transparency log.
func (s *Sigstore) timestamps(c *x509.Certificate, at time.Time) ([]byte, error) {
	id, err := logID(s.certificates)
	if err != nil {
		return nil, err
	}
	sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: [sha256.Size]byte(id)}, Timestamp: uint64(at.UnixMilli())} // a time after 1970
	entry := ct.LogEntry{Leaf: ct.MerkleTreeLeaf{Version: ct.V1, LeafType: ct.TimestampedEntryLeafType, TimestampedEntry: &ct.TimestampedEntry{
		EntryType: ct.PrecertLogEntryType, Timestamp: sct.Timestamp,
		PrecertEntry: &ct.PreCert{IssuerKeyHash: sha256.Sum256(s.issuer.RawSubjectPublicKeyInfo), TBSCertificate: c.RawTBSCertificate},
	}}}
	input, err := ct.SerializeSCTSignatureInput(sct, entry)
	if err != nil {
		return nil, err
	}
	signature, err := signed(s.certificates, input)
	if err != nil {
		return nil, err
	}
	sct.Signature = ct.DigitallySigned{Algorithm: tls.SignatureAndHashAlgorithm{Hash: tls.SHA256, Signature: tls.ECDSA}, Signature: signature}
	list, err := x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&sct})
	if err != nil {
		return nil, err
	}
	encoded, err := tls.Marshal(*list)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(encoded)
}

func signed(key *ecdsa.PrivateKey, text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return ecdsa.SignASN1(rand.Reader, key, sum[:])
}
