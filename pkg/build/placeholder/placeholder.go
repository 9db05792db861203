// Package placeholder replaces secret values with placeholders of the same shape.
package placeholder

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
)

// processKey makes placeholders and aliases unpredictable, and stable within a process.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
})

func keyedHash(parts ...string) []byte {
	mac := hmac.New(sha256.New, processKey())
	for _, part := range parts {
		mac.Write(fmt.Appendf(nil, "%d %s", len(part), part))
	}
	return mac.Sum(nil)
}

// Alias returns a name for a text that is derived from a secret value. Within a process, equal texts have
// the same name. The name does not reveal the text.
func Alias(text string) string { return "derived-" + hex.EncodeToString(keyedHash("alias", text)[:5]) }

// few lists YAML values that are too common to be secret, and that control which fields and objects exist.
var few = []string{"", "true", "false", "null", "~", "yes", "no", "on", "off", "y", "n"}

// Of returns an unpredictable value with the shape of a secret value, which differs from it in each
// letter and digit, so that any text that contains a part of the secret value differs, too.
func Of(secret string) string {
	if slices.Contains(few, strings.ToLower(secret)) {
		return secret
	}
	if strings.ContainsAny(secret, "\n:{[") {
		var document any
		if budget.Unmarshal("", []byte(secret), &document) == nil && isTree(document) {
			return marshalLike(secret, Values(document, nil))
		}
	}
	if decoded, err := base64.StdEncoding.DecodeString(secret); err == nil && len(decoded) > 3 && printableText(decoded) {
		return base64.StdEncoding.EncodeToString([]byte(Of(string(decoded))))
	}
	lines := strings.SplitAfter(secret, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "-----") { // a PEM header or footer
			lines[i] = rotated(line, keyedHash("placeholder", secret, strconv.Itoa(i)))
		}
	}
	return strings.Join(lines, "")
}

func isTree(value any) bool {
	kind := reflect.ValueOf(value).Kind()
	return kind == reflect.Map || kind == reflect.Slice
}

// marshalLike encodes a document as JSON if the original is JSON, and as YAML otherwise.
func marshalLike(original string, document any) string {
	encode := yaml.Marshal
	if json.Valid([]byte(original)) {
		encode = func(v any) ([]byte, error) { return json.Marshal(v) }
	}
	text, err := encode(document)
	if err != nil { // cannot fail for decoded documents
		return Alias(original)
	}
	return string(text)
}

func printableText(text []byte) bool {
	valid := !bytes.ContainsRune(text, unicode.ReplacementChar)
	return valid && bytes.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) < 0
}

// classes lists the characters that rotated replaces with others of the same class. It excludes
// characters with a meaning in YAML, URLs, paths and lists, so that the text is parsed in the same
// way.
var classes = []string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "!$^();+_"}

// rotated replaces each character by another of its class, by the bytes of stream.
func rotated(text string, stream []byte) string {
	use := slices.Clone(classes)
	if _, err := hex.DecodeString(strings.ToLower(text)); err == nil && len(text) >= 8 {
		use[1], use[2] = use[1][:6], use[2][:6]
	}
	number := strings.Trim(text, use[0]) == ""
	next := 0
	return strings.Map(func(r rune) rune {
		if next == len(stream) {
			sum := sha256.Sum256(stream)
			stream, next = sum[:], 0
		}
		by := int(stream[next])
		next++
		class := use[0][1:]
		if !number || next > 1 || r == '0' { // a number does not begin with 0
			i := slices.IndexFunc(use, func(class string) bool { return strings.ContainsRune(class, r) })
			if i < 0 {
				return otherLetter(r)
			}
			class = use[i]
		}
		at := strings.IndexRune(class, r)
		return rune(class[(at+1+by%(len(class)-1))%len(class)])
	}, text)
}

// otherLetter returns a neighbor of a non-ASCII letter.
func otherLetter(r rune) rune {
	if r > unicode.MaxASCII && unicode.IsLetter(r^1) && unicode.IsLetter(r) {
		return r ^ 1
	}
	return r
}

// Values returns a document with placeholders for all scalars except those that public has at the same path.
func Values(value, public any) any {
	switch value := value.(type) {
	case map[string]any:
		known, _ := public.(map[string]any)
		other := make(map[string]any, len(value))
		for key, v := range value {
			other[key] = Values(v, known[key])
		}
		return other
	case []any:
		known, _ := public.([]any)
		other := make([]any, len(value))
		for i, v := range value {
			var same any
			if i < len(known) {
				same = known[i]
			}
			other[i] = Values(v, same)
		}
		return other
	case nil, bool:
		return value
	case string:
		if value == public {
			return value
		}
		return Of(value)
	default:
		if reflect.DeepEqual(value, public) {
			return value
		}
		return number(value)
	}
}

func number(value any) any {
	encoded, err := json.Marshal(value)
	if err != nil { // cannot fail for decoded documents
		return value
	}
	text := Of(string(encoded))
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return whole
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return number
	}
	return text
}

// Document returns the decrypted document with placeholders for the values that are
// encrypted in the sealed one.
func Document(sealed, clear []byte, format string) []byte {
	switch format {
	case "json", "yaml":
		var secret, public any
		if budget.Unmarshal("", clear, &secret) == nil && budget.Unmarshal("", sealed, &public) == nil && isTree(secret) {
			return []byte(marshalLike(string(clear), Values(secret, public)))
		}
	case "dotenv", "ini":
		known := strings.Split(string(sealed), "\n")
		lines := strings.Split(string(clear), "\n")
		for i, line := range lines {
			if key, value, assigned := strings.Cut(line, "="); assigned && !slices.Contains(known, line) {
				lines[i] = key + "=" + Of(value)
			}
		}
		return []byte(strings.Join(lines, "\n"))
	}
	return []byte(Of(string(clear)))
}
