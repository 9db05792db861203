package stub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"path"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
)

// encrypted matches a SOPS-encrypted value. The submatch is the type of the plain value.
var encrypted = lazy.Regexp(`ENC\[[A-Za-z0-9_]+,data:[^,\]]*,iv:[^,\]]*,tag:[^,\]]*,type:([a-z]+)\]`)

// Files returns files with stub values in place of SOPS-encrypted values, and without SOPS
// metadata.
func Files(files map[string][]byte) map[string][]byte {
	all := make(map[string][]byte, len(files))
	for name, content := range files {
		if encrypted().Match(content) {
			switch path.Ext(name) {
			case ".json":
				content = stubJSON(content)
			case ".env", ".ini":
				content = stubEnvironment(content)
			default:
				content = stubYAML(content)
			}
		}
		all[name] = content
	}
	return all
}

// stubOf returns a stub of the type of an encrypted value.
func stubOf(value []byte, encoded bool) string {
	switch m := encrypted().FindSubmatch(value); {
	case string(m[1]) == "int" || string(m[1]) == "float":
		return "1"
	case string(m[1]) == "bool":
		return "true"
	case encoded:
		return base64.StdEncoding.EncodeToString([]byte(generate(string(value))))
	}
	return generate(string(value))
}

var documentEnd = lazy.Regexp(`(?m)^---`)

// stubYAML replaces the values of each document with SOPS metadata.
func stubYAML(content []byte) []byte {
	if trimmed := bytes.TrimSpace(content); len(trimmed) > 0 && trimmed[0] == '{' {
		return stubJSON(content)
	}
	var out bytes.Buffer
	starts := documentEnd().FindAllIndex(content, -1)
	from := 0
	for _, at := range append(starts, []int{len(content)}) {
		out.Write(stubDocument(content[from:at[0]]))
		from = at[0]
	}
	return out.Bytes()
}

var (
	metadataLine = lazy.Regexp(`(?m)^sops:`)
	secretLine   = lazy.Regexp(`(?m)^kind: *Secret *$`)
)

func stubDocument(document []byte) []byte {
	if !metadataLine().Match(document) {
		return document
	}
	secret := secretLine().Match(document)
	var out bytes.Buffer
	section := ""
	for line := range bytes.Lines(document) {
		if len(line) > 0 && !strings.ContainsRune(" \t\r\n#-", rune(line[0])) {
			section, _, _ = strings.Cut(string(line), ":")
		}
		if section == "sops" {
			continue
		}
		out.Write(encrypted().ReplaceAllFunc(line, func(value []byte) []byte { return []byte(stubOf(value, secret && section == "data")) }))
	}
	return out.Bytes()
}

// stubEnvironment replaces the values of a file with lines of NAME=VALUE.
func stubEnvironment(content []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(content) {
		if !bytes.HasPrefix(line, []byte("sops_")) {
			out.Write(encrypted().ReplaceAllFunc(line, func(value []byte) []byte { return []byte(stubOf(value, false)) }))
		}
	}
	return out.Bytes()
}

// stubJSON replaces the values of a JSON document.
func stubJSON(content []byte) []byte {
	var fields map[string]any
	if json.Unmarshal(content, &fields) != nil || fields["sops"] == nil {
		return content
	}
	delete(fields, "sops")
	kind, _ := fields["kind"].(string)
	for name, value := range fields {
		fields[name] = stubValue(value, kind == controllers.Secret && name == "data")
	}
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return content
	}
	return text
}

func stubValue(value any, encoded bool) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = stubValue(field, encoded)
		}
	case []any:
		for i, element := range v {
			v[i] = stubValue(element, encoded)
		}
	case string:
		m := encrypted().FindStringSubmatch(v)
		switch {
		case m == nil:
		case m[1] == "int" || m[1] == "float":
			return 1
		case m[1] == "bool":
			return true
		default:
			return stubOf([]byte(v), encoded)
		}
	}
	return value
}
