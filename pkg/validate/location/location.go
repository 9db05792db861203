package location

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template/parse"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/download"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

const (
	// Example is a schema location, and form the remedy for an invalid one.
	Example = "https://raw.githubusercontent.com/datreeio/CRDs-catalog/main/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"
	form    = "use a directory, or the form " + Example
	// schemaMax is the maximum size of a schema.
	schemaMax = 8 << 20
	// fresh is the maximum age of a cached file. Older files are removed.
	fresh = 24 * time.Hour
)

// layouts lists the file names of JSON schemas in a directory without a template, as in the CRDs catalog and by default
// in kubeconform.
func layouts() []string {
	return []string{"{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json", "{{.ResourceKind}}{{.KindSuffix}}.json"}
}

// pattern is a parsed file name template: its texts and fields.
type pattern []parse.Node

// newPattern parses a template with the fields of kubeconform.
func newPattern(text string) (pattern, error) {
	tree, err := parse.New("").Parse(text, "", "", map[string]*parse.Tree{})
	if err != nil {
		return nil, errors.New("template" + strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, node := range tree.Root.Nodes {
		if _, ok := node.(*parse.TextNode); !ok && field(node) == "" {
			return nil, fmt.Errorf("template: %s is not supported: the fields are {{.%s}}", node, strings.Join(slices.Sorted(maps.Keys(names(schema.GroupVersionKind{}, ""))), "}}, {{."))
		}
	}
	return tree.Root.Nodes, nil
}

// field returns the field that a node of a template prints, "" for other nodes.
func field(node parse.Node) string {
	action, ok := node.(*parse.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 || len(action.Pipe.Cmds) != 1 || len(action.Pipe.Cmds[0].Args) != 1 {
		return ""
	}
	f, ok := action.Pipe.Cmds[0].Args[0].(*parse.FieldNode)
	if !ok || len(f.Ident) != 1 {
		return ""
	}
	if _, known := names(schema.GroupVersionKind{}, "")[f.Ident[0]]; !known {
		return ""
	}
	return f.Ident[0]
}

// names returns the template fields with the same names and values as in kubeconform.
func names(kind schema.GroupVersionKind, kubernetes string) map[string]string {
	first, _, _ := strings.Cut(kind.Group, ".")
	return map[string]string{
		"NormalizedKubernetesVersion": "v" + kubernetes + ".0", "StrictSuffix": "-strict", "ResourceKind": strings.ToLower(kind.Kind),
		"ResourceAPIVersion": kind.Version, "Group": kind.Group, "KindSuffix": "-" + strings.ToLower(first+"-"+kind.Version),
	}
}

// fileOf returns the name of the file with the schema of a kind. The names of kinds are untrusted.
func fileOf(p pattern, kind schema.GroupVersionKind, kubernetes string) (string, error) {
	for _, part := range []string{kind.Group, kind.Version, kind.Kind} {
		if part == "" || strings.Trim(strings.ToLower(part), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || part[0] == '.' {
			return "", fs.ErrNotExist
		}
	}
	values := names(kind, kubernetes)
	var text strings.Builder
	for _, node := range p {
		if name := field(node); name != "" {
			text.WriteString(values[name])
		} else {
			text.WriteString(node.String())
		}
	}
	return text.String(), nil
}

// document is a file with a CustomResourceDefinition or a JSON schema. name is its path or address.
type document struct {
	name string
	text json.RawMessage
	crd  bool
}

// place is a location: a server or a local directory.
type place struct {
	// dir is "" for a server.
	dir      string
	patterns []pattern
	// crds holds the CustomResourceDefinitions of a directory without a template, nil until it has been searched.
	crds map[schema.GroupKind]*document
}

// newPlace returns the place that a value of --schema-location selects.
func newPlace(value string) (*place, error) {
	fixed, _, templated := strings.Cut(value, "{{")
	p, rest := &place{}, []string{value}
	if strings.Contains(value, "://") {
		if err := checkAddress(fixed, value); err != nil {
			return nil, hint.Errorf(form, "invalid --schema-location: %w", err)
		}
	} else if p.dir, rest = value, layouts(); templated {
		p.dir = fixed[:strings.LastIndexAny(fixed, `/\`)+1]
		rest = []string{filepath.ToSlash(value[len(p.dir):])}
		p.dir = filepath.Clean(p.dir)
	}
	for _, text := range rest {
		parsed, err := newPattern(text)
		if err != nil {
			return nil, hint.Errorf(form, "invalid --schema-location %q: %w", value, err)
		}
		p.patterns = append(p.patterns, parsed)
	}
	if info, err := os.Stat(p.dir); p.dir != "" && (err != nil || !info.IsDir()) {
		return nil, hint.Errorf(form, "--schema-location %s: %s is not a directory", value, p.dir)
	}
	if !templated {
		p.crds = map[schema.GroupKind]*document{}
	}
	return p, nil
}

// checkAddress checks an address template and the part before its fields.
func checkAddress(fixed, value string) error {
	u, err := url.Parse(fixed)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case u.User != nil:
		return fmt.Errorf("credentials in the URL of %s are not supported", u.Host)
	case u.Path == "":
		return fmt.Errorf("the host of %s must not be a template", value)
	case !strings.Contains(value, ".ResourceKind"):
		return fmt.Errorf("%s does not contain {{.ResourceKind}}", web.Bare(u))
	}
	return web.CheckEncrypted(u)
}

// find returns the schema of a kind, or nil if the place does not contain one.
func (p *place) find(ctx context.Context, s *Schemas, kind schema.GroupVersionKind, kubernetes string) (*document, error) {
	if found := p.crds[kind.GroupKind()]; found != nil {
		return found, nil
	}
	for _, one := range p.patterns {
		name, err := fileOf(one, kind, kubernetes)
		shown, text := filepath.Join(p.dir, name), []byte(nil)
		switch {
		case err != nil:
		case p.dir == "":
			shown, text, err = s.fetch(ctx, name)
		default:
			text, err = s.file(p.dir, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return decode(shown, text, kind.GroupKind())
	}
	return nil, nil
}

// file returns the content of a file in a directory. It does not follow links that leave the directory.
func (s *Schemas) file(dir, name string) ([]byte, error) {
	file, err := os.OpenInRoot(dir, filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading
	info, err := file.Stat()
	shown := filepath.Join(dir, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", shown)
	}
	if err := s.reads.File(shown, info.Size()); err != nil {
		return nil, err
	}
	return budget.ReadAll(file, shown, "the file", schemaMax)
}

// search reads the CustomResourceDefinitions in all YAML and JSON files of a directory. The first definition of a kind
// takes precedence.
func (p *place) search(ctx context.Context, s *Schemas) error {
	err := fs.WalkDir(os.DirFS(p.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			return nil
		}
		text, err := s.file(p.dir, name)
		if err != nil || !bytes.Contains(text, []byte("CustomResourceDefinition")) {
			return err
		}
		shown := filepath.Join(p.dir, name)
		return sourcetree.Documents(bytes.NewReader(text), func(one []byte) error {
			var content map[string]any
			if err := budget.Unmarshal(shown, one, &content); err != nil {
				return fmt.Errorf("reading %s: %w", shown, err)
			}
			kind := defines(content)
			if kind.Kind == "" || p.crds[kind] != nil {
				return nil
			}
			p.crds[kind], err = decode(shown, one, kind)
			return err
		})
	})
	if err != nil && ctx.Err() == nil {
		return hint.Errorf("correct or remove the file, or set --schema-location to another directory", "%w", err)
	}
	return err
}

// fetch returns a file of a server with the address for messages. It uses the cache for files that were fetched less than a day
// ago.
func (s *Schemas) fetch(ctx context.Context, address string) (shown string, text []byte, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, err
	}
	shown = web.Bare(u)
	sum := sha256.Sum256([]byte(address))
	kept := filepath.Join(s.settings.Cache, hex.EncodeToString(sum[:])+".json")
	if info, err := os.Stat(kept); s.settings.Cache != "" && err == nil && s.settings.Now().Sub(info.ModTime()) <= fresh {
		if text, err := s.file(s.settings.Cache, filepath.Base(kept)); err == nil {
			return shown, text, nil
		}
	}
	if text, err = download.New(s.settings.Agent).Read(ctx, address, schemaMax); err != nil {
		return "", nil, err
	}
	if err := s.reads.File(shown, int64(len(text))); err != nil {
		return "", nil, err
	}
	if _, err := decode(shown, text, schema.GroupKind{}); err != nil || s.settings.Cache == "" {
		return shown, text, nil // the caller reports invalid schemas
	}
	err = os.MkdirAll(s.settings.Cache, 0o700)
	if err == nil {
		err = output.ReplaceFile(kept, text)
	}
	if err != nil {
		return "", nil, fmt.Errorf("writing to the schema cache: %w", err)
	}
	return shown, text, nil
}

// trim removes old files from the cache. Other processes may remove them concurrently.
func (s *Schemas) trim() {
	entries, _ := os.ReadDir(s.settings.Cache)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && s.settings.Now().Sub(info.ModTime()) > fresh {
			_ = os.Remove(filepath.Join(s.settings.Cache, entry.Name()))
		}
	}
}

// decode reads a CustomResourceDefinition or a JSON schema of a kind. An empty kind matches all kinds.
func decode(name string, text []byte, kind schema.GroupKind) (*document, error) {
	var content map[string]any
	var exceeded *budget.ExceededError
	if err := budget.Unmarshal(name, text, &content); errors.As(err, &exceeded) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%s: not a JSON schema", name)
	}
	defined := defines(content)
	switch crd := defined.Kind != ""; {
	case crd && kind.Kind != "" && defined != kind:
		return nil, fmt.Errorf("%s: the CustomResourceDefinition defines %s, not %s", name, defined, kind)
	case !crd && !slices.ContainsFunc(keywords(), func(name string) bool { return content[name] != nil }):
		return nil, fmt.Errorf("%s: not a JSON schema: it has no properties", name)
	}
	encoded, err := json.Marshal(content)
	return &document{name, encoded, defined.Kind != ""}, err
}

// keywords lists keywords that identify a JSON schema: the schema of a kind contains at least one of them.
func keywords() []string {
	return []string{"properties", "$ref", "allOf", "anyOf", "oneOf", "x-kubernetes-preserve-unknown-fields"}
}

// defines returns the kind that a CustomResourceDefinition defines, or an empty kind for other objects.
func defines(content map[string]any) (kind schema.GroupKind) {
	if content["kind"] == "CustomResourceDefinition" {
		spec, _ := content["spec"].(map[string]any)
		in, _ := spec["names"].(map[string]any)
		kind.Group, _ = spec["group"].(string)
		kind.Kind, _ = in["kind"].(string)
	}
	return kind
}
