// Package decrypt decrypts documents with the SOPS library. Only the helper program links it.
package decrypt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/logging"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	jsonstore "github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/sops"
)

const (
	// documentMax is the maximum size of a document.
	documentMax = 32 << 20
	// keysMax is the maximum number of keys in a document, because each may require a request.
	keysMax = 100
)

// New returns the function that decrypts documents. Failures of key services are remembered until the process
// ends, so that many documents with the same key cause only a single wait. env returns environment variables.
func New(env func(string) string) func(context.Context, sops.Request) (sops.Response, error) {
	for _, logger := range logging.Loggers {
		logger.SetOutput(io.Discard) // stderr belongs to flux
	}
	return (&documents{env: env}).decrypt
}

// documents decrypts documents.
type documents struct {
	env   func(string) string
	known failures
}

func (d *documents) decrypt(ctx context.Context, r sops.Request) (sops.Response, error) {
	store, err := storeOf(r)
	if err != nil {
		return sops.Response{}, err
	}
	tree, err := store.LoadEncryptedFile(r.Document)
	if err != nil {
		return sops.Response{}, fmt.Errorf("reading the encrypted document: %s", firstLine(err))
	}
	if n := tree.Metadata.MasterKeyCount(); n > keysMax {
		return sops.Response{}, &budget.ExceededError{Fact: fmt.Sprintf("the encrypted document has %d keys, more than %d", n, keysMax)}
	}
	service, err := d.newService(ctx, r.Keys)
	if err != nil {
		return sops.Response{}, err
	}
	service.groups = map[string]int{}
	for i, group := range tree.Metadata.KeyGroups {
		for _, key := range group {
			service.groups[string(key.EncryptedDataKey())] = i + 1
		}
	}
	// Try keys that require no request first.
	order := []string{"age", "pgp"}
	key, err := tree.Metadata.GetDataKeyWithKeyServices([]keyservice.KeyServiceClient{service}, order)
	if err != nil {
		return sops.Response{NoKey: true, Failures: service.failures}, nil // the failures describe the error
	}
	cipher := &authenticated{Cipher: aes.NewCipher()}
	if _, err := tree.Decrypt(key, cipher); err != nil {
		if cipher.failed != nil {
			err = cipher.failed
		}
		return sops.Response{}, err
	}
	clear, err := store.EmitPlainFile(tree.Branches)
	return sops.Response{Clear: clear}, err
}

// storeOf checks the size of the document, and returns the SOPS store for its format.
func storeOf(r sops.Request) (sopslib.Store, error) {
	if len(r.Document) > documentMax {
		return nil, &budget.ExceededError{Fact: "the encrypted document is larger than " + budget.Size(documentMax)}
	}
	c := config.NewStoresConfig()
	switch r.Format {
	case "dotenv":
		return dotenv.NewStore(&c.Dotenv), nil
	case "ini":
		return ini.NewStore(&c.INI), nil
	}
	if err := budget.YAML("", r.Document); err != nil {
		return nil, err
	}
	switch r.Format {
	case "json":
		return jsonstore.NewStore(&c.JSON), nil
	case "yaml":
		return yaml.NewStore(&c.YAML), nil
	case "binary":
		return jsonstore.NewBinaryStore(&c.JSONBinary), nil
	}
	return nil, fmt.Errorf("unknown encrypted document format %q", r.Format)
}

// authenticated is a Cipher whose errors contain the path of the value that cannot be
// decrypted. Library errors contain the value, which may be unencrypted, instead of the path.
type authenticated struct {
	aes.Cipher

	failed error
}

// Decrypt implements sopslib.Cipher.
func (a *authenticated) Decrypt(ciphertext string, key []byte, path string) (any, error) {
	clear, err := a.Cipher.Decrypt(ciphertext, key, path)
	if err == nil {
		return clear, nil
	}
	fact := "the value was changed or moved after its encryption"
	if !strings.HasPrefix(ciphertext, "ENC[") {
		fact = "the value is not encrypted, but the SOPS metadata requires encryption"
	}
	err = fmt.Errorf("decrypting %s: %s", strings.ReplaceAll(strings.TrimSuffix(path, ":"), ":", "."), fact)
	if a.failed == nil {
		a.failed = err
	}
	return nil, err
}

// lineMax is the maximum length of a library error in a message.
const lineMax = 300

// firstLine returns the beginning of an error. Errors of cloud clients have many lines.
func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if len(line) > lineMax {
		line = strings.ToValidUTF8(line[:lineMax], "") + "…"
	}
	return line
}

var errNoKey = errors.New("no available key")
