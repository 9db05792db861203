package inventory

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// ciphertext matches a value that is encrypted with SOPS. sopsMetadata matches the metadata that SOPS adds to a document in each
// format. A text that only quotes a ciphertext has no such metadata.
var (
	ciphertext   = lazy.Regexp(`ENC\[AES256_GCM,data:[A-Za-z0-9+/=]*,iv:[A-Za-z0-9+/=]+,tag:[A-Za-z0-9+/=]+,type:[a-z]+\]`)
	sopsMetadata = lazy.Regexp(`(?m)^\s*(sops:|"sops":|sops_mac=|\[sops\])`)
)

// encryptedFields returns the fields of an object with values encrypted with SOPS. A text must be a SOPS document, unless the
// object itself has SOPS metadata.
func encryptedFields(o controllers.Object) []string {
	_, whole := o["sops"]
	var found []string
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			_, inside := value["sops"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(value)) {
				if inside && name == "sops" {
					continue
				}
				walk(strings.TrimPrefix(path+"."+name, "."), value[name])
			}
		case []any:
			for i, item := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		case string:
			text := value
			if (controllers.Path{"kind"}).String(o) == "Secret" && strings.HasPrefix(path, "data.") {
				if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
					text = string(decoded)
				}
			}
			if !ciphertext().MatchString(text) {
				return
			}
			if alone := ciphertext().FindString(text) == strings.TrimSpace(text); whole || alone || sopsMetadata().MatchString(text) {
				found = append(found, path)
			}
		}
	}
	walk("", map[string]any(o))
	return found
}

// undecrypted returns the finding for objects that were applied with encrypted values because their Kustomization has no
// spec.decryption.
func undecrypted(s rules.Subject, objects []build.Object) (rules.Finding, bool) {
	if len(s.Kind.Decryption) == 0 || s.Kind.Decryption.String(s.Object) != "" {
		return rules.Finding{}, false
	}
	var f rules.Finding
	for _, o := range objects {
		fields := strings.Join(encryptedFields(o.Object), ", ")
		switch object := controllers.IDOf(o.Object); {
		case fields == "":
		case f.Code != "":
			f.Details = append(f.Details, object.String()+" as well: "+fields)
		default:
			f = rules.Finding{Object: object, Code: "ciphertext", Message: fmt.Sprintf("SOPS-encrypted values were applied without decryption because %s does not set spec.decryption: %s", s, fields)}
			f.Fixes, f.Retry = []string{fmt.Sprintf("set spec.decryption of %s to provider sops and the Secret with the keys", s)}, s.Again()
		}
	}
	if more := len(f.Details) - objectsShown; more > 0 {
		f.Details = append(f.Details[:objectsShown], andMore(more)...)
	}
	return f, f.Code != ""
}
