package build

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/pkg/controllers"
)

// ErrNoKey is returned by a Decrypter if none of its keys decrypts the document. The build then
// keeps the encrypted values.
var ErrNoKey = errors.New("no available key can decrypt it")

// ErrUntrusted is returned for secret values that are withheld from a build because its input is not
// trusted.
var ErrUntrusted = errors.New("the author of the files is untrusted")

// Untrusted decrypts nothing.
type Untrusted struct{}

// Decrypt implements Decrypter.
func (Untrusted) Decrypt(context.Context, string, []byte, string) ([]byte, error) {
	return nil, ErrNoKey
}

// Decrypter decrypts documents that SOPS encrypted.
type Decrypter interface {
	// Decrypt returns the decrypted document. The name is for messages. The format is json, yaml,
	// dotenv, ini or binary. An object is passed as JSON with sorted keys, as in the controller:
	// its MAC depends on the order of the keys in the file and cannot be verified.
	Decrypt(ctx context.Context, name string, document []byte, format string) ([]byte, error)
}

// decrypterOf returns the decrypter of a Kustomization, or nil if its spec does not request
// decryption.
func decrypterOf(ks *unstructured.Unstructured, o Options) Decrypter {
	provider, _, _ := unstructured.NestedString(ks.Object, "spec", "decryption", "provider")
	if provider != "sops" || o.Decrypt == nil {
		return nil
	}
	lookup := o.Lookup
	if lookup == nil {
		lookup = FromObjects(nil)
	}
	return o.Decrypt(ks, lookup)
}

// encrypted reports whether SOPS encrypted the object as a whole.
func encrypted(object map[string]any) bool {
	mac, _, _ := unstructured.NestedString(object, "sops", "mac")
	return mac != ""
}

// encryptedFile reports whether text is a document that SOPS encrypted, in any of its formats.
func encryptedFile(text []byte) bool {
	return bytes.Contains(text, []byte("sops")) && bytes.Contains(text, []byte("ENC["))
}

// encryptedKeys returns the keys of the data of a Secret that contain encrypted documents.
func encryptedKeys(o *unstructured.Unstructured) []string {
	if o.GroupVersionKind().Group != "" {
		return nil
	}
	return keysOf(o, encryptedFile)
}

// encryptedValues returns the keys with a single encrypted value, as a secretGenerator creates them
// from an encrypted dotenv file.
func encryptedValues(o *unstructured.Unstructured) []string {
	return keysOf(o, func(value []byte) bool { return bytes.HasPrefix(value, []byte("ENC[AES256_GCM,")) })
}

// keysOf returns the keys of the data of a Secret whose values match, sorted.
func keysOf(o *unstructured.Unstructured, matches func([]byte) bool) []string {
	if o.GetKind() != controllers.Secret {
		return nil
	}
	data, err := DataOf(o)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(data)), func(key string) bool { return !matches(data[key]) })
}

// EncryptedError is returned if the data of an object is encrypted. File is the file or the name of
// the object.
type EncryptedError struct{ File string }

func (e *EncryptedError) Error() string { return e.File + " is encrypted with SOPS" }

// ReadData returns the data of a ConfigMap or a Secret, or an EncryptedError.
func ReadData(o *unstructured.Unstructured) (map[string][]byte, error) {
	if sealed(o) {
		return nil, &EncryptedError{controllers.IDOf(o.Object).String()}
	}
	return DataOf(o)
}

// sealed reports whether an object, or any of its keys, is encrypted.
func sealed(o *unstructured.Unstructured) bool {
	return encrypted(o.Object) || len(encryptedKeys(o)) > 0
}

// decrypt sets Encrypted and decrypts the object if there is a decrypter.
func (o *Object) decrypt(ctx context.Context, with Decrypter) error {
	whole, keys := encrypted(o.Object), encryptedKeys(o.Unstructured)
	_, untrusted := with.(Untrusted)
	o.Encrypted = whole || len(keys)+len(encryptedValues(o.Unstructured)) > 0
	o.Withheld = o.Encrypted && untrusted
	if with == nil || !whole && len(keys) == 0 || o.GetAnnotations()[toolkit+"/decrypt"] == "disabled" {
		return nil
	}
	if whole {
		return unlessKeyless(o.decryptWhole(ctx, with))
	}
	for _, key := range keys {
		if err := unlessKeyless(o.decryptKey(ctx, with, key)); err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
	}
	return nil
}

// unlessKeyless ignores ErrNoKey: the values remain encrypted.
func unlessKeyless(err error) error {
	if errors.Is(err, ErrNoKey) {
		return nil
	}
	return err
}

func (o *Object) decryptWhole(ctx context.Context, with Decrypter) error {
	document, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	clear, err := with.Decrypt(ctx, describe(o.Unstructured), document, "json")
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(clear, &object); err != nil {
		return fmt.Errorf("reading the decrypted object: %w", err)
	}
	delete(object, "sops")
	before := maps.Clone(o.Object)
	delete(before, "sops")
	o.Secret = append(o.Secret, Different(object, before, nil)...)
	o.Object = object
	return nil
}

func (o *Object) decryptKey(ctx context.Context, with Decrypter, key string) error {
	data, err := DataOf(o.Unstructured)
	if err != nil {
		return err
	}
	clear, err := with.Decrypt(ctx, fmt.Sprintf("%s, key %q,", describe(o.Unstructured), key), data[key], formatOf(key))
	if err != nil {
		return err
	}
	field, value := "data", base64.StdEncoding.EncodeToString(clear)
	if text, _, _ := unstructured.NestedStringMap(o.Object, "stringData"); text[key] != "" {
		field, value = "stringData", string(clear)
	}
	o.Secret = append(o.Secret, []string{field, key})
	return unstructured.SetNestedField(o.Object, value, field, key)
}

// formatOf returns the SOPS format of a file by its name.
func formatOf(name string) string {
	switch path.Ext(name) {
	case ".yaml", ".yml":
		return "yaml"
	case ".json":
		return "json"
	case ".env":
		return "dotenv"
	case ".ini":
		return "ini"
	}
	return "binary"
}

// Masks of values that SOPS encrypted. In a Secret with registry credentials the API server
// requires JSON.
const (
	hidden      = "**SOPS**"
	hiddenLogin = `{"mask":"` + hidden + `"}`
)

// Masked returns a copy of an object with all values masked that SOPS encrypted, and reports whether
// there were any. The API server accepts the copy, but its values cannot be used.
func Masked(o *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	whole, keys := encrypted(o.Object), append(encryptedKeys(o), encryptedValues(o)...)
	if !whole && len(keys) == 0 {
		return o, false
	}
	o = o.DeepCopy()
	if o.GetKind() != controllers.Secret {
		delete(o.Object, "sops")
		o.Object, _ = MapLeaves(o.Object, func(leaf any) any {
			if text, ok := leaf.(string); ok && strings.HasPrefix(text, "ENC[") {
				return hidden
			}
			return leaf
		}).(map[string]any)
		return o, true
	}
	if whole {
		delete(o.Object, "sops")
		keys = nil
	}
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(o.Object, field)
		for key := range values {
			if !whole && !slices.Contains(keys, key) {
				continue
			}
			mask := hidden
			if kind == "kubernetes.io/dockerconfigjson" {
				mask = hiddenLogin
			}
			if field == "data" {
				mask = base64.StdEncoding.EncodeToString([]byte(mask))
			}
			values[key] = mask
		}
		if len(values) > 0 {
			o.Object[field] = values
		}
	}
	return o, true
}
