// Package assert reads test files, and evaluates their assertions while the controllers reconcile. It
// prints nothing. docs/test-files.md describes the files.
package assert

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/fault"
)

// The type of the documents in test files.
const (
	APIVersion = "test.fluxkit.dev/v1"
	Kind       = "Test"
)

// Suffix is the suffix of test file names.
const Suffix = ".fluxtest.yaml"

// DefaultTimeout is the timeout of a step that sets none.
const DefaultTimeout = 2 * time.Minute

// Position is a place in a test file.
type Position struct {
	File         string
	Line, Column int
}

// String returns the position in the format of compilers.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// document is a document of a test file.
type document struct {
	APIVersion string   `field:"apiVersion,required"`
	Kind       string   `field:"kind,required"`
	Metadata   metadata `field:"metadata,required"`
	Spec       spec     `field:"spec,required"`
}

type metadata struct {
	Name string `field:"name,required"`
}

type spec struct {
	Timeout time.Duration `field:"timeout"`
	Steps   []Step        `field:"steps,required"`
}

// Test is a test with its steps.
type Test struct {
	Position
	Name  string
	Steps []Step
}

// Step contains the actions of a step, and the assertions that are evaluated afterwards.
type Step struct {
	Position
	Name      string        `field:"name"`
	Timeout   time.Duration `field:"timeout"`
	Faults    []fault.Fault `field:"faults"`
	Commit    *Commit       `field:"commit"`
	Apply     []Object      `field:"apply"`
	Patch     []Patch       `field:"patch"`
	Delete    []Ref         `field:"delete"`
	Reconcile []Ref         `field:"reconcile"`
	Expect    []Expectation `field:"expect"`
}

// acts reports whether a step has actions.
func (s *Step) acts() bool {
	return s.Commit != nil || len(s.Faults)+len(s.Apply)+len(s.refs()) > 0
}

// Commit is a change in the served repository.
type Commit struct {
	Message string `field:"message"`
	// Files maps paths to the content of files, nil for a file to delete.
	Files map[string]*string `field:"files,required"`
}

// Object is a complete object.
type Object map[string]any

// Patch changes fields of an object with a JSON merge patch.
type Patch struct {
	Object Ref    `field:"object,required"`
	Merge  Object `field:"merge,required"`
}

// Ref identifies an object. The API version of a Flux object may be empty.
type Ref struct {
	APIVersion string `field:"apiVersion"`
	Kind       string `field:"kind,required"`
	Namespace  string `field:"namespace"`
	Name       string `field:"name,required"`
}

// GroupVersionKind returns the kind with the API version in the file, or in the catalog.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	if r.APIVersion == "" {
		if k, ok := controllers.FindKind(r.Kind); ok {
			return schema.FromAPIVersionAndKind(k.APIVersion(), k.Kind)
		}
	}
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// flux returns the kind of a Flux object.
func (r Ref) flux() (controllers.Kind, bool) {
	return controllers.KindOf(r.GroupVersionKind().Group, r.Kind)
}

// String returns KIND/NAMESPACE/NAME, or KIND/NAME.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// Expectation is an assertion: exactly one field is set.
type Expectation struct {
	Position
	Exists       *Ref          `field:"exists"`
	Absent       *Ref          `field:"absent"`
	Value        *Value        `field:"value"`
	Ready        *Ready        `field:"ready"`
	Pruned       *Ref          `field:"pruned"`
	Corrected    *Patch        `field:"corrected"`
	Event        *EventPattern `field:"event"`
	Notification *Notification `field:"notification"`
	Committed    *FilePattern  `field:"committed"`
	Why          *Why          `field:"why"`
	Order        []Ref         `field:"order"`
}

// Value compares the result of an expression on an object.
type Value struct {
	Object     Ref    `field:"object,required"`
	Expression string `field:"expression,required"`
	// Equals is nil for an expression that must be true.
	Equals *any `field:"equals"`
}

func (v Value) expression() expression.Expression {
	return expression.Expression{Text: v.Expression, Boolean: v.Equals == nil}
}

// Ready expects a Flux object to be ready.
type Ready struct {
	Object Ref `field:"object,required"`
	// Reconciliations is the maximum number of reconciliations, 0 for no limit.
	Reconciliations int `field:"reconciliations"`
}

// EventPattern selects Kubernetes events of an object.
type EventPattern struct {
	Object  Ref      `field:"object,required"`
	Type    string   `field:"type"`
	Reason  string   `field:"reason,required"`
	Message *Pattern `field:"message"`
}

// Notification selects notifications that the address of a Provider receives.
type Notification struct {
	Provider ProviderRef `field:"provider,required"`
	Object   *Ref        `field:"object"`
	Reason   string      `field:"reason"`
	Message  *Pattern    `field:"message"`
}

// ProviderRef identifies a Provider.
type ProviderRef struct {
	Namespace string `field:"namespace,required"`
	Name      string `field:"name,required"`
}

// FilePattern selects a file of the served repository.
type FilePattern struct {
	File    string   `field:"file,required"`
	Content *Pattern `field:"content,required"`
}

// Why expects a root cause in the diagnosis of a Flux object.
type Why struct {
	Object    Ref      `field:"object,required"`
	RootCause *Ref     `field:"rootCause"`
	Message   *Pattern `field:"message"`
}

// Pattern is a regular expression.
type Pattern struct{ *regexp.Regexp }

// matches reports whether a text matches the pattern; nil matches everything.
func (p *Pattern) matches(text string) bool { return p == nil || p.MatchString(text) }

// describe returns the pattern after a label, "" for nil.
func (p *Pattern) describe(label string) string {
	if p == nil {
		return ""
	}
	return " " + label + " /" + p.String() + "/"
}

// optional returns a word after a label, "" without a word.
func optional(label, word string) string {
	if word == "" {
		return ""
	}
	return " " + strings.TrimSpace(label+" "+word)
}
