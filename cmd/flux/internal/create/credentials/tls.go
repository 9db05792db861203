package credentials

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/secrets/credential"
)

// TLS holds the names and the values of the flags with TLS certificates.
type TLS struct {
	Ca, Cert, Key             string
	CaFile, CertFile, KeyFile string
}

// Add registers the flags.
func (t *TLS) Add(fs *pflag.FlagSet) {
	fs.StringVar(&t.CaFile, t.Ca, "", "path to the CA certificates, '-' for standard input")
	if t.Cert != "" {
		fs.StringVar(&t.CertFile, t.Cert, "", "path to the client certificate, '-' for standard input")
		fs.StringVar(&t.KeyFile, t.Key, "", "path to the client key, '-' for standard input")
	}
}

// Check records a certificate without a key or a key without a certificate.
func (t *TLS) Check(c *creation.Creation) {
	if (t.CertFile != "") != (t.KeyFile != "") {
		c.Check(errors.New("--" + t.Cert + " and --" + t.Key + " must be set together"))
	}
}

// Read reads and checks the files and returns the data of a Secret.
func (t *TLS) Read(c *creation.Creation) map[string]string {
	data := map[string]string{}
	if ca := c.File(t.Ca, t.CaFile); len(ca) > 0 || t.CaFile != "" && len(c.Problems) == 0 {
		c.CheckFlag(t.Ca, credential.Certificates(ca))
		data["ca.crt"] = string(ca)
	}
	if t.CertFile == "" || t.KeyFile == "" {
		return data
	}
	cert, key := c.File(t.Cert, t.CertFile), c.File(t.Key, t.KeyFile)
	if len(c.Problems) == 0 {
		c.CheckFlag(t.Cert, credential.Pair(cert, key))
	}
	data["tls.crt"], data["tls.key"] = string(cert), string(key)
	return data
}

// SecretType returns the type of a Secret that has only these files;
// kubernetes.io/tls requires a certificate and a key.
func (t *TLS) SecretType() string {
	if t.CertFile != "" {
		return "kubernetes.io/tls"
	}
	return "Opaque"
}
