package audit

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/review"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// File is the name of the file with exceptions in the root of a repository.
const File = ".flux-audit.yaml"

// Exception selects the objects to which a rule does not apply. Empty fields match everything; other fields are patterns of
// path.Match.
type Exception struct {
	Rule      string `json:"rule"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Path is the directory of a cluster.
	Path string `json:"path,omitempty"`
	// Reason explains the exception and has no effect.
	Reason string `json:"reason,omitempty"`
}

// Exceptions returns the exceptions in the file of a repository, or nil if it has none.
func Exceptions(tree fs.FS) ([]Exception, error) {
	text, err := fs.ReadFile(tree, File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := budget.YAML(File, text); err != nil {
		return nil, err
	}
	var content struct {
		Allow []Exception `json:"allow"`
	}
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
		return nil, hint.Errorf("see flux help audit-rules", "%s: %w", File, err)
	}
	for i, e := range content.Allow {
		if err := Check([]string{e.Rule}); err != nil {
			return nil, hint.Errorf("list the rules: flux help audit-rules", "%s: allow[%d]: %w", File, i, err)
		}
		for _, pattern := range []string{e.Kind, e.Namespace, e.Name, e.Path} {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, hint.Errorf("use patterns such as web-* or [ab]?", "%s: allow[%d]: invalid pattern %q", File, i, pattern)
			}
		}
	}
	return content.Allow, nil
}

func (e Exception) matches(rule, cluster string, id controllers.ID) bool {
	if e.Rule != rule {
		return false
	}
	for _, field := range []struct{ pattern, value string }{{e.Kind, id.Kind}, {e.Namespace, id.Namespace}, {e.Name, id.Name}, {e.Path, cluster}} {
		if ok, err := path.Match(field.pattern, field.value); field.pattern != "" && (err != nil || !ok) {
			return false
		}
	}
	return true
}

// validated lists the rules of package validate whose findings an audit includes.
var validated = []string{
	validate.RuleBuild, validate.RuleReference, validate.RuleDependency, validate.RuleNamespace, validate.RuleDeprecated, validate.RuleVariable,
	validate.RuleOwner, validate.RuleDecryption, validate.RuleDeadlock, validate.RuleExpression, validate.RuleLabel, validate.RuleKustomization,
	verdict.RuleUnknownField, verdict.RuleSchema, verdict.RuleCEL, verdict.RuleAPIVersion, verdict.RuleServer,
}

// IDs returns the IDs of all rules, with the rules of package validate last.
func IDs() []string {
	var ids []string
	for _, r := range Rules() {
		ids = append(ids, r.ID)
	}
	return append(ids, validated...)
}

// Check returns an error for the first unknown rule ID.
func Check(ids []string) error {
	for _, id := range ids {
		if !slices.Contains(IDs(), id) {
			return &review.UnknownRuleError{ID: id}
		}
	}
	return nil
}
