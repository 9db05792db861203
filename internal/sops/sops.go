// Package sops decrypts documents in the format of SOPS with age keys, and
// leaves what is encrypted for other services to the sops program. SOPS' own
// library would bring the SDKs of every cloud into each start of flux.
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

// ErrNoKey says that a document is encrypted for somebody else.
var ErrNoKey = errors.New("no key at hand decrypts it")

// dataKeySize is that of AES-256.
const dataKeySize = 32

// Decrypter decrypts with the keys it has.
type Decrypter struct {
	// Identities returns the age keys at hand. It is asked once.
	Identities func(context.Context) ([]age.Identity, error)
	// Program decrypts what no age key does, such as by the sops on PATH. It
	// may be nil, and returns ErrNoKey where it cannot.
	Program func(ctx context.Context, document []byte, format string) ([]byte, error)

	asked      bool
	identities []age.Identity
	failed     error
}

// metadata is what SOPS notes in a document.
type metadata struct {
	Age []struct {
		Enc string `yaml:"enc"`
	} `yaml:"age"`
	Groups []any `yaml:"key_groups"`
}

// Decrypt returns a document in clear: json, yaml, dotenv or binary here, and
// whatever sops knows where that is asked. The checksum over the whole is not
// looked at, as by the controller, since the order of an object's keys is
// lost; each value is authenticated with the place it stands at.
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

// tree decrypts JSON and YAML, which JSON is a part of.
func (d *Decrypter) tree(document []byte, format string) ([]byte, error) {
	if err := budget.YAML("", document); err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil || len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("reading the encrypted document: it is no map in %s", format)
	}
	top := root.Content[0]
	noted, rest := takeOut(top, "sops")
	if noted == nil {
		return nil, errors.New("the document has no part called sops")
	}
	var m metadata
	if err := noted.Decode(&m); err != nil {
		return nil, fmt.Errorf("reading what sops noted: %w", err)
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

// takeOut returns the value of a key, and what a map holds besides.
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

// dataKey is the key of a document, sealed for several recipients.
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
			return nil, fmt.Errorf("decrypting the key of the document: %w", err)
		}
		key, err := io.ReadAll(io.LimitReader(reader, dataKeySize+1))
		if err != nil {
			return nil, fmt.Errorf("decrypting the key of the document: %w", err)
		}
		if len(key) != dataKeySize {
			return nil, errors.New("the key of the document has the wrong length")
		}
		return key, nil
	}
	return nil, ErrNoKey
}

// Identities reads age keys: one a line, among comments.
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
	if err != nil { // the error of the library may quote the line
		return nil, errors.New("an age key is malformed")
	}
	return identities, nil
}
