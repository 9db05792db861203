package debug

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
)

// valuesOf returns the merged values of a release.
func valuesOf(ctx context.Context, a *app.App, o *options, object *unstructured.Unstructured) (shown, error) {
	values, origins, err := charts.Values(ctx, object, build.LookupFunc(buildflags.Cluster(a).Data))
	if err != nil {
		return shown{}, err
	}
	leaves := leavesOf(values, nil)
	var list []shownVariable
	for i := range leaves {
		from := originOf(leaves[i].path, origins)
		leaves[i].origin = originText(from.From, from.Key)
		if from.From.Kind == "Secret" && !o.reveal {
			leaves[i].masked = true
			leaves[i].set(redact.Mask)
		}
		list = append(list, shownVariable{strings.Join(leaves[i].path, "."), leaves[i].value(), leaves[i].origin, leaves[i].masked})
	}
	text, err := output.YAML(values)
	if err == nil && o.origin {
		text, err = annotated(text, leaves)
	}
	if err != nil {
		return shown{}, fmt.Errorf("encoding the values: %w", err)
	}
	result := shown{string(text), values, list}
	if o.origin {
		result.encoded = list
	}
	return result, nil
}

// leaf is a scalar, or an empty map or list.
type leaf struct {
	path   []string
	value  func() any
	set    func(any)
	origin string
	masked bool
}

// leavesOf returns the leaves of a value at path.
func leavesOf(value any, path []string) []leaf {
	var leaves []leaf
	add := func(step string, child any, get func() any, set func(any)) {
		at := append(slices.Clone(path), step)
		below := leavesOf(child, at)
		if len(below) == 0 {
			below = []leaf{{path: at, value: get, set: set}}
		}
		leaves = append(leaves, below...)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			add(key, child, func() any { return value[key] }, func(v any) { value[key] = v })
		}
		slices.SortFunc(leaves, func(a, b leaf) int { return slices.Compare(a.path, b.path) })
	case []any:
		for i, child := range value {
			add(strconv.Itoa(i), child, func() any { return value[i] }, func(v any) { value[i] = v })
		}
	}
	return leaves
}

// originOf returns the origin of the value at a path. If there are several
// origins, a Secret has precedence, so that the value is masked.
func originOf(path []string, origins []charts.ValueOrigin) charts.ValueOrigin {
	var found charts.ValueOrigin
	for _, o := range origins {
		if len(o.Path) <= len(path) && slices.Equal(o.Path, path[:len(o.Path)]) && found.From.Kind != "Secret" {
			found = o
		}
	}
	return found
}

// annotated adds the origin of each value as a comment.
func annotated(text []byte, leaves []leaf) ([]byte, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	origins := map[string]string{}
	for _, l := range leaves {
		origins[strings.Join(l.path, "\x00")] = l.origin
	}
	for _, node := range document.Content {
		comment(node, nil, origins)
	}
	var b bytes.Buffer
	encoder := goyaml.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}

func comment(node *goyaml.Node, path []string, origins map[string]string) {
	if origin, ok := origins[strings.Join(path, "\x00")]; ok {
		node.LineComment = origin
		return
	}
	switch node.Kind {
	case goyaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			comment(node.Content[i+1], append(slices.Clone(path), node.Content[i].Value), origins)
		}
	case goyaml.SequenceNode:
		for i, item := range node.Content {
			comment(item, append(slices.Clone(path), strconv.Itoa(i)), origins)
		}
	}
}
