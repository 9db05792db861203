package credentials

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/credential"
)

// TLS are the files of a TLS connection, by the names of their flags.
type TLS struct {
	Ca, Cert, Key             string
	CaFile, CertFile, KeyFile string
}

// Add adds the flags.
func (t *TLS) Add(fs *pflag.FlagSet) {
	fs.StringVar(&t.CaFile, t.Ca, "", "a file with the certificates to trust; '-' is standard input")
	if t.Cert != "" {
		fs.StringVar(&t.CertFile, t.Cert, "", "a file with the client's certificate; '-' is standard input")
		fs.StringVar(&t.KeyFile, t.Key, "", "a file with the key of the client's certificate; '-' is standard input")
	}
}

// Check refuses a certificate without its key, and the reverse.
func (t *TLS) Check(c *creation.Creation) {
	if (t.CertFile != "") != (t.KeyFile != "") {
		c.Check(errors.New("--" + t.Cert + " and --" + t.Key + " go together"))
	}
}

// Read returns the data of a Secret with what the files hold, checked.
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

// SecretType is the type of a Secret with the files alone: kubernetes.io/tls
// has to have a certificate and a key.
func (t *TLS) SecretType() string {
	if t.CertFile != "" {
		return "kubernetes.io/tls"
	}
	return "Opaque"
}
