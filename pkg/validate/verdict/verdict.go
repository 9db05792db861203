// Package verdict defines the results of a validation with schemas in the helper process.
package verdict

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the helper process job that validates objects, and the argument of the process.
const Job helper.Call[Request, []Verdict] = "validate"

// Schemas validates objects with schemas.
type Schemas interface {
	// Validate returns the verdict for each object, in the same order.
	Validate(ctx context.Context, r Request) ([]Verdict, error)
}

// Request contains the objects of a cluster.
type Request struct {
	// Kubernetes is the minor version, such as 1.36.
	Kubernetes string `json:"kubernetes"`
	// CRDs lists CustomResourceDefinitions in addition to the ones among the objects.
	CRDs []json.RawMessage `json:"crds,omitempty"`
	// Schemas lists the JSON schemas of kinds without a CustomResourceDefinition.
	Schemas []Schema          `json:"schemas,omitempty"`
	Objects []json.RawMessage `json:"objects"`
}

// Schema is the JSON schema of a kind.
type Schema struct {
	Kind schema.GroupVersionKind `json:"kind"`
	Text json.RawMessage         `json:"text"`
}

// Verdict is the result for an object.
type Verdict struct {
	Problems []Problem `json:"problems,omitempty"`
	// Unknown is the reason why the object could not be validated, or "".
	Unknown string `json:"unknown,omitempty"`
	// MissingSchema is set if the object could not be validated because there is no schema for its kind.
	MissingSchema bool `json:"missingSchema,omitempty"`
	// Assumed is set if the CustomResourceDefinition is not among the objects.
	Assumed bool `json:"assumed,omitempty"`
	// Source is the file or address of a schema from a schema location. Unreadable is set if that schema cannot be used, and
	// Fix is the remedy.
	Source     string `json:"source,omitempty"`
	Unreadable bool   `json:"unreadable,omitempty"`
	Fix        string `json:"fix,omitempty"`
	// Deprecated is the notice about a deprecated API version, or "".
	Deprecated string `json:"deprecated,omitempty"`
	// Namespaced is set if the kind is known to be namespaced.
	Namespaced bool `json:"namespaced,omitempty"`
}

// Problem is a violation of a schema or a rule.
type Problem struct {
	// Rule is the ID of the violated rule.
	Rule string `json:"rule"`
	// Field is the path of the field, or "" for the object.
	Field string `json:"field,omitempty"`
	// Path is the field path as map keys and list indices, as far as it is known.
	Path []string `json:"path,omitempty"`
	// Message describes the problem, without the value.
	Message string `json:"message"`
	// Value is the invalid value, or "".
	Value string `json:"value,omitempty"`
}

// The IDs of the schema rules.
const (
	// RuleUnknownField is violated by a field that the schema does not declare.
	RuleUnknownField = "unknown-field"
	// RuleSchema is violated by a value that the schema does not allow.
	RuleSchema = "schema"
	// RuleCEL is violated if a validation rule of a CustomResourceDefinition fails.
	RuleCEL = "rule"
	// RuleAPIVersion is violated by a kind or version that Kubernetes does not serve.
	RuleAPIVersion = "api-version"
	// RuleServer is violated by an object that an API server rejects.
	RuleServer = "server"
)

// Client implements Schemas in a helper process.
type Client struct{ process *helper.Process }

// New returns the client of a pool.
func New(pool *helper.Pool) Client {
	return Client{helper.Shared(pool, string(Job), func() *helper.Process { return pool.Process("", pool.Named(), string(Job)) })}
}

// Validate implements Schemas.
func (c Client) Validate(ctx context.Context, r Request) ([]Verdict, error) {
	verdicts, err := Job.Do(ctx, c.process, "validating objects", r)
	if err == nil && len(verdicts) != len(r.Objects) {
		err = fmt.Errorf("validating objects: %d results for %d objects", len(verdicts), len(r.Objects))
	}
	return verdicts, err
}
