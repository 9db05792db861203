package validate

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	kustomize "sigs.k8s.io/kustomize/api/types"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// checkKustomizations reports unknown fields in the kustomization.yaml of the directory of a Kustomization. kustomize-controller
// decodes this file itself and removes them. In other directories, kustomize rejects them with a build error.
func checkKustomizations(c *cluster) {
	seen := map[string]bool{}
	for _, side := range c.deployed.Renderings {
		if !build.IsKustomization(side.Owner) {
			continue
		}
		tree, folder, err := repository.Directory(c.graph, side.Owner)
		if err != nil {
			continue
		}
		for _, name := range konfig.RecognizedKustomizationFileNames() {
			name = path.Join(folder, name)
			text, err := fs.ReadFile(tree, name)
			if err != nil || seen[name] {
				continue
			}
			seen[name] = true
			owner, file := controllers.VersionedIDOf(side.Owner.Object), name
			if own, err := fs.ReadFile(c.graph.Tree, name); err != nil || !bytes.Equal(own, text) {
				file = "" // the directory is in another source
			}
			for _, u := range unknownFields(text) {
				c.findings = append(c.findings, Finding{
					Severity: Warning, Rule: RuleKustomization, Object: owner, Owner: owner, File: file, Line: u.line, Field: u.field,
					Message: "unknown field: kustomize-controller ignores it, and kustomize rejects it",
				})
			}
		}
	}
}

// unknownField is a field of a kustomization.yaml.
type unknownField struct {
	field string
	line  int
}

// unknownFields returns the fields that kustomize does not support: at most one within each top-level field.
func unknownFields(text []byte) []unknownField {
	var content map[string]any
	if budget.Unmarshal("", text, &content) != nil {
		return nil
	}
	var all []unknownField
	for _, key := range slices.Sorted(maps.Keys(content)) {
		text, err := json.Marshal(map[string]any{key: content[key]})
		if err != nil {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&kustomize.Kustomization{})
		if err == nil {
			continue
		}
		if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			name, err := strconv.Unquote(quoted)
			if err == nil && name != key {
				name = key + ": " + name
			}
			all = append(all, unknownField{field: name})
		}
	}
	if documents := sourcetree.Positions(text); len(documents) > 0 {
		for i := range all {
			key, _, _ := strings.Cut(all[i].field, ": ")
			all[i].line, _ = documents[0].Line(key)
		}
	}
	return all
}
