package sops

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// sealedValue matches an encrypted value.
var sealedValue = regexp.MustCompile(`^ENC\[AES256_GCM,data:([^,]*),iv:([^,]+),tag:([^,]+),type:([a-z]+)\]$`)

// open decrypts every value of a node in place. A value is authenticated with the names of the
// maps that contain it, without lists.
func open(n *yaml.Node, key []byte, path []string) error {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			below := append(path[:len(path):len(path)], n.Content[i].Value)
			if err := open(n.Content[i+1], key, below); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := open(item, key, path); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		if err := openScalar(n, key, path); err != nil {
			return err
		}
	}
	n.HeadComment, n.LineComment, n.FootComment = readable(n.HeadComment), readable(n.LineComment), readable(n.FootComment)
	return nil
}

// readable removes an encrypted comment.
func readable(comment string) string {
	if strings.Contains(comment, "ENC[AES256_GCM") {
		return ""
	}
	return comment
}

// tags are the YAML tags of the types in SOPS.
var tags = map[string]string{"str": "!!str", "int": "!!int", "float": "!!float", "bool": "!!bool", "bytes": "!!str"}

func openScalar(n *yaml.Node, key []byte, path []string) error {
	clear, typ, sealed, err := unseal(n.Value, key, strings.Join(path, ":")+":")
	if err != nil {
		return fmt.Errorf("decrypting %s: %w", strings.Join(path, "."), err)
	}
	if !sealed {
		return nil
	}
	n.Value, n.Style, n.Tag = clear, 0, tags[typ]
	switch typ {
	case "bool": // SOPS writes them as Python does: True and False
		n.Value = strings.ToLower(clear)
	case "str", "bytes":
		if strings.Contains(clear, "\n") {
			n.Style = yaml.LiteralStyle
		}
	}
	return nil
}

// unseal decrypts a value; sealed is false if it is not encrypted.
func unseal(value string, key []byte, place string) (clear, typ string, sealed bool, err error) {
	m := sealedValue.FindStringSubmatch(value)
	if m == nil {
		return value, "", false, nil
	}
	var parts [3][]byte
	for i := range parts {
		if parts[i], err = base64.StdEncoding.DecodeString(m[i+1]); err != nil {
			return "", "", true, errors.New("malformed value")
		}
	}
	data, iv, tag := parts[0], parts[1], parts[2]
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", "", true, err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(iv))
	if err != nil {
		return "", "", true, err
	}
	opened, err := gcm.Open(nil, iv, append(data, tag...), []byte(place))
	if err != nil {
		return "", "", true, errors.New("the value was changed or moved after its encryption")
	}
	return string(opened), m[4], true, nil
}

// encode encodes the document as SOPS does.
func encode(root *yaml.Node, format string) ([]byte, error) {
	if format == "yaml" {
		var b bytes.Buffer
		e := yaml.NewEncoder(&b)
		e.SetIndent(4)
		err := errors.Join(e.Encode(root), e.Close())
		return b.Bytes(), err
	}
	if format == "binary" {
		data, _ := takeOut(root.Content[0], "data")
		if data == nil {
			return nil, errors.New("the document has no data")
		}
		return []byte(data.Value), nil
	}
	var content any
	if err := root.Decode(&content); err != nil {
		return nil, fmt.Errorf("decoding the decrypted document: %w", err)
	}
	return json.Marshal(content)
}

// dotenv decrypts NAME=value lines; the metadata is in lines of its own.
func (d *Decrypter) dotenv(document []byte) ([]byte, error) {
	var sealed, kept []string
	for _, line := range strings.Split(string(document), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(name, "sops_age__list_") && strings.HasSuffix(name, "__map_enc"):
			sealed = append(sealed, strings.ReplaceAll(value, `\n`, "\n"))
		case !strings.HasPrefix(name, "sops_"):
			kept = append(kept, line)
		}
	}
	key, err := d.dataKey(sealed)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, line := range kept {
		name, value, ok := strings.Cut(line, "=")
		if strings.HasPrefix(line, "#ENC[") {
			continue // a comment
		}
		if !ok || strings.HasPrefix(line, "#") {
			lines = append(lines, line)
			continue
		}
		clear, _, _, err := unseal(value, key, name+":")
		if err != nil {
			return nil, fmt.Errorf("decrypting %s: %w", name, err)
		}
		lines = append(lines, name+"="+strings.ReplaceAll(clear, "\n", `\n`))
	}
	return []byte(strings.Join(lines, "\n")), nil
}
