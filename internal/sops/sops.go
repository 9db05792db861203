// Package sops decrypts documents in the format of SOPS with age keys, and passes documents that
// are encrypted for other services to the sops program. The library of SOPS would add the SDKs of
// all cloud providers to each start of flux.
package sops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
)

// ErrNoKey is returned if no available key decrypts a document.
var ErrNoKey = errors.New("no available key decrypts it")

// dataKeySize is the key size of AES-256.
const dataKeySize = 32

// Decrypter decrypts documents.
type Decrypter struct {
	// Identities returns the available age keys. It is called once.
	Identities func(context.Context) ([]age.Identity, error)
	// Program decrypts documents without an age key, for example with the sops on PATH. It may be
	// nil, and returns ErrNoKey if it cannot decrypt.
	Program func(ctx context.Context, document []byte, format string) ([]byte, error)

	asked      bool
	identities []age.Identity
	failed     error
}

// metadata is the metadata of SOPS in a document.
type metadata struct {
	Age []struct {
		Enc string `yaml:"enc"`
	} `yaml:"age"`
	Groups []any `yaml:"key_groups"`
}

// Decrypt returns a decrypted document: json, yaml, dotenv or binary with age keys, and all
// formats of sops with Program. Like kustomize-controller it does not verify the MAC of the
// document, since the order of keys is lost; each value is authenticated with its path.
func (d *Decrypter) Decrypt(ctx context.Context, document []byte, format string) ([]byte, error) {
	clear, err := d.byAge(ctx, document, format)
	if errors.Is(err, ErrNoKey) && d.Program != nil {
		return d.Program(ctx, document, format)
	}
	return clear, err
}

func (d *Decrypter) byAge(ctx context.Context, document []byte, format string) ([]byte, error) {
	switch format {
	case "json", "yaml", "binary", "dotenv":
	default:
		return nil, ErrNoKey
	}
	if !d.asked {
		d.asked = true
		d.identities, d.failed = d.Identities(ctx)
	}
	if d.failed != nil {
		return nil, d.failed
	}
	if format == "dotenv" {
		return d.dotenv(document)
	}
	return d.tree(document, format)
}

// tree decrypts JSON and YAML.
func (d *Decrypter) tree(document []byte, format string) ([]byte, error) {
	if err := budget.YAML("", document); err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil || len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("reading the encrypted document: not a %s map", format)
	}
	top := root.Content[0]
	noted, rest := takeOut(top, "sops")
	if noted == nil {
		return nil, errors.New("the document has no sops metadata")
	}
	var m metadata
	if err := noted.Decode(&m); err != nil {
		return nil, fmt.Errorf("reading the sops metadata: %w", err)
	}
	var sealed []string
	for _, a := range m.Age {
		sealed = append(sealed, a.Enc)
	}
	key, err := d.dataKey(sealed)
	if err != nil {
		return nil, err
	}
	top.Content = rest
	if err := open(top, key, nil); err != nil {
		return nil, err
	}
	return encode(&root, format)
}

// takeOut returns the value of a key, and the rest of the map.
func takeOut(m *yaml.Node, name string) (value *yaml.Node, rest []*yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			value = m.Content[i+1]
			continue
		}
		rest = append(rest, m.Content[i], m.Content[i+1])
	}
	return value, rest
}

// dataKey returns the key of a document, which is encrypted for several recipients.
func (d *Decrypter) dataKey(sealed []string) ([]byte, error) {
	if len(d.identities) == 0 {
		return nil, ErrNoKey
	}
	for _, enc := range sealed {
		reader, err := age.Decrypt(armor.NewReader(strings.NewReader(enc)), d.identities...)
		var other *age.NoIdentityMatchError
		if errors.As(err, &other) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("decrypting the data key: %w", err)
		}
		key, err := io.ReadAll(io.LimitReader(reader, dataKeySize+1))
		if err != nil {
			return nil, fmt.Errorf("decrypting the data key: %w", err)
		}
		if len(key) != dataKeySize {
			return nil, errors.New("the data key has the wrong length")
		}
		return key, nil
	}
	return nil, ErrNoKey
}

// Identities parses age keys, one a line, and ignores other lines.
func Identities(text string) ([]age.Identity, error) {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "AGE-SECRET-KEY-") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	identities, err := age.ParseIdentities(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil { // the error of the library may contain the key
		return nil, errors.New("malformed age key")
	}
	return identities, nil
}
