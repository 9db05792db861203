package validate

import (
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// Severity is the severity of a finding.
type Severity string

const (
	// Invalid means that the API server or a controller rejects the object.
	Invalid Severity = "error"
	// Unknown means that the object could not be validated.
	Unknown Severity = "unknown"
	// Warning means that there is a problem that does not prevent the deployment.
	Warning Severity = "warning"
	// Note means that a fact cannot be checked in the repository.
	Note Severity = "note"
)

// severities lists all severities, most severe first.
var severities = [...]Severity{Invalid, Unknown, Warning, Note}

// The IDs of the rules that are not derived from schemas.
const (
	RuleBuild         = "build"
	RuleReference     = "reference"
	RuleDependency    = "dependency"
	RuleNamespace     = "namespace"
	RuleDeprecated    = "deprecated-version"
	RuleVariable      = "variable"
	RuleMissingSchema = "missing-schema"
	// RuleSchemaLocation is for objects whose schema from a schema location cannot be used.
	RuleSchemaLocation = "schema-location"
	RuleNotRendered    = "not-rendered"
	RuleNotValidated   = "not-validated"
	RuleOwner          = "owner"
	RuleDecryption     = "decryption"
	RuleDeadlock       = "deadlock"
	RuleExpression     = "expression"
	RuleLabel          = "label"
	RuleKustomization  = "kustomization"
)

// Finding is a problem of an object.
type Finding struct {
	Severity Severity                `json:"severity"`
	Rule     string                  `json:"rule"`
	Object   controllers.VersionedID `json:"object"`
	// Owner is the Kustomization or HelmRelease that applies the object.
	Owner controllers.VersionedID `json:"owner"`
	// File is the file that contains the object, if there is exactly one.
	File string `json:"file,omitempty"`
	// Line is the line of the field, or of its innermost parent in the file. It is 0 if unknown.
	Line int `json:"line,omitempty"`
	// Field is the path of the field, or "".
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Fix is the remedy, or "".
	Fix string `json:"fix,omitempty"`
	// Value is the value of the field, used to find the file that sets it, or "".
	Value string `json:"-"`
	// Assumed is set if the finding may not apply because the cluster may have another Flux version.
	Assumed bool `json:"-"`
}

// Result is the result for a cluster.
type Result struct {
	// Path is the directory of the cluster.
	Path string `json:"path"`
	// Owners is the number of rendered Kustomizations and HelmReleases, Objects the number of their
	// objects, and Validated the number of validated objects.
	Owners    int `json:"owners"`
	Objects   int `json:"objects"`
	Validated int `json:"validated"`
	// Allowed is the number of audit findings that exceptions allow.
	Allowed int `json:"allowed,omitempty"`
	// Findings are sorted by severity.
	Findings []Finding `json:"findings"`
}

// Count returns the number of findings of a severity.
func (r *Result) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

func (c *cluster) note(text string) {
	if c.Note != nil {
		c.Note(text)
	}
}

// object is an object with the owner that applies it.
type object struct {
	build.Object
	side *repository.Rendering
	ref  controllers.VersionedID
	// unknown is set if the object could not be validated.
	unknown bool
}

// add adds a finding about an object.
func (c *cluster) add(o *object, f Finding) {
	f.Object, f.Owner = o.ref, controllers.VersionedIDOf(o.side.Owner.Object)
	if f.Severity == Unknown {
		o.unknown = true
	}
	f.Message, f.Field = c.concealed.Text(masked(f.Message, o.side.Build.SecretValues)), c.concealed.Text(f.Field)
	c.findings = append(c.findings, f)
}
