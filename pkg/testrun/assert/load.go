package assert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The limits of a test file.
const (
	maxBytes      = 1 << 20
	maxNodes      = 100_000
	maxTests      = 100
	maxSteps      = 100
	maxExpression = 4096
)

// InvalidError is returned for a file that is not a valid test file.
type InvalidError struct {
	// Problems lists the problems with their positions, each on one line.
	Problems []string
}

func (e *InvalidError) Error() string { return strings.Join(e.Problems, "\n") }

// Find loads the test files of a repository, in the order of their paths.
func Find(ctx context.Context, tree fs.FS) ([]Test, error) {
	limits := budget.New(budget.Default())
	var tests []Test
	var invalid InvalidError
	err := filetree.Walk(ctx, tree, func(name string, _ fs.DirEntry) error {
		if !strings.HasSuffix(name, Suffix) {
			return nil
		}
		if err := limits.File(name, 0); err != nil {
			return err
		}
		file, err := tree.Open(name)
		if err != nil {
			return err
		}
		found, err := Load(name, file)
		var problems *InvalidError
		if errors.As(err, &problems) {
			invalid.Problems, err = append(invalid.Problems, problems.Problems...), nil
		}
		tests = append(tests, found...)
		return errors.Join(err, file.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("reading the test files: %w", err)
	}
	if len(invalid.Problems) > 0 {
		return nil, &invalid
	}
	return tests, nil
}

// Load reads the tests of a file.
func Load(name string, from io.Reader) ([]Test, error) {
	text, err := budget.ReadAll(from, name, "the file", maxBytes)
	if err != nil {
		return nil, err
	}
	if err := budget.YAML(name, text); err != nil {
		return nil, err
	}
	if budget.Nodes(text) > maxNodes {
		return nil, &budget.ExceededError{Name: name, Fact: fmt.Sprintf("the file has more than %d nodes", maxNodes)}
	}
	d := &decoder{file: name}
	tests := d.documents(text)
	if len(d.problems) > 0 {
		return nil, &InvalidError{d.problems}
	}
	return tests, nil
}

// syntaxLine matches the line in an error of the YAML parser.
var syntaxLine = lazy.Regexp(`^yaml: (?:line (\d+): )?(.*)`)

func (d *decoder) documents(text []byte) []Test {
	var tests []Test
	for decoder := goyaml.NewDecoder(bytes.NewReader(text)); ; {
		var n goyaml.Node
		err := decoder.Decode(&n)
		switch {
		case errors.Is(err, io.EOF):
			if len(tests) == 0 && len(d.problems) == 0 {
				d.failAt(Position{d.file, 1, 1}, "the file has no documents")
			}
			return tests
		case err != nil:
			m := syntaxLine().FindStringSubmatch(err.Error())
			if m == nil {
				m = []string{"", "", err.Error()}
			}
			line, _ := strconv.Atoi(m[1])
			d.failAt(Position{d.file, max(line, 1), 1}, "invalid YAML: %s", m[2])
			return nil
		case len(n.Content) == 0 || n.Content[0].Tag == "!!null":
			continue // an empty document
		}
		if len(tests) == maxTests {
			d.fail(n.Content[0], "the file has more than %d documents", maxTests)
			return nil
		}
		tests = append(tests, d.document(n.Content[0], tests))
	}
}

func (d *decoder) document(n *goyaml.Node, before []Test) Test {
	var doc document
	d.decode(n, "", reflect.ValueOf(&doc).Elem())
	at := d.position(n)
	if doc.APIVersion != "" && doc.APIVersion != APIVersion {
		d.failAt(at, "apiVersion: must be %s, not %s", APIVersion, doc.APIVersion)
	}
	if doc.Kind != "" && doc.Kind != Kind {
		d.failAt(at, "kind: must be %s, not %s", Kind, doc.Kind)
	}
	if name := doc.Metadata.Name; name != "" {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			d.failAt(at, "metadata.name: invalid name %q: must be an RFC 1123 subdomain", name)
		}
		for _, t := range before {
			if t.Name == name {
				d.failAt(at, "metadata.name: the test on line %d has the same name %q", t.Line, name)
			}
		}
	}
	if len(doc.Spec.Steps) > maxSteps {
		d.failAt(at, "spec.steps: more than %d steps", maxSteps)
	}
	for i := range doc.Spec.Steps {
		s := &doc.Spec.Steps[i]
		if s.Timeout == 0 {
			s.Timeout = doc.Spec.Timeout
		}
		if s.Timeout == 0 {
			s.Timeout = DefaultTimeout
		}
		if s.Name == "" {
			s.Name = "step " + strconv.Itoa(i+1)
		}
		d.step(s, fmt.Sprintf("spec.steps[%d]", i))
	}
	return Test{Position: at, Name: doc.Metadata.Name, Steps: doc.Spec.Steps}
}

// step checks the constraints of a step that are not expressed by its types.
func (d *decoder) step(s *Step, at string) {
	if s.Timeout < time.Second {
		d.failAt(s.Position, "%s.timeout: must be at least 1s", at)
	}
	if s.Commit != nil {
		for name := range s.Commit.Files {
			if !fs.ValidPath(name) || name == "." || path.Base(name) == ".git" || strings.HasPrefix(name, ".git/") || strings.Contains(name, "/.git/") {
				d.failAt(s.Position, "%s.commit.files: invalid path %q: must be relative to the repository root, without . and ..", at, name)
			}
		}
	}
	for i, o := range s.Apply {
		ref := Ref{APIVersion: controllers.Path{"apiVersion"}.String(o), Kind: controllers.Path{"kind"}.String(o), Name: controllers.Name(o)}
		if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
			d.failAt(s.Position, "%s.apply[%d]: apiVersion, kind and metadata.name are required", at, i)
		}
	}
	for i := range s.Faults {
		if wrong := s.Faults[i].Check(); wrong != "" {
			d.failAt(s.Position, "%s.faults[%d]: %s", at, i, wrong)
		}
	}
	for i := range s.Expect {
		d.expectation(&s.Expect[i], fmt.Sprintf("%s.expect[%d]", at, i))
	}
	for _, r := range s.refs() {
		d.ref(s.Position, r, at)
	}
	for _, r := range s.Reconcile {
		if k, ok := r.flux(); !ok || !k.Has(controllers.Reconcile) {
			d.failAt(s.Position, "%s.reconcile: %s is not a kind that Flux reconciles", at, r.Kind)
		}
	}
}

// refs returns the objects that a step's actions reference.
func (s *Step) refs() []Ref {
	var all []Ref
	for _, p := range s.Patch {
		all = append(all, p.Object)
	}
	all = append(all, s.Delete...)
	return append(all, s.Reconcile...)
}

// ref checks the API version and the namespace of an object.
func (d *decoder) ref(at Position, r Ref, where string) {
	k, isFlux := r.flux()
	switch {
	case r.Kind == "" || r.Name == "":
	case r.APIVersion == "" && !isFlux:
		d.failAt(at, "%s: apiVersion is required for %s, which is not a Flux kind", where, r.Kind)
	case isFlux && r.Namespace == "":
		d.failAt(at, "%s: namespace is required for %s", where, k.Kind)
	}
}

// expectation checks that exactly one assertion is set, and its objects.
func (d *decoder) expectation(e *Expectation, at string) {
	set := e.set()
	switch len(set) {
	case 0:
		d.failAt(e.Position, "%s: an assertion is required", at)
		return
	case 1:
	default:
		d.failAt(e.Position, "%s: only one assertion is allowed, not %s: put each in its own item", at, strings.Join(set, " and "))
		return
	}
	for _, r := range e.Refs() {
		d.ref(e.Position, r, at+"."+set[0])
	}
	for _, r := range e.fluxRefs() {
		if k, ok := r.flux(); r.Kind != "" && (!ok || !k.HasConditions()) {
			d.failAt(e.Position, "%s.%s: %s is not a kind with a Ready condition that Flux sets", at, set[0], r.Kind)
		}
	}
	if v := e.Value; v != nil && len(v.Expression) > maxExpression {
		d.failAt(e.Position, "%s.value.expression: longer than %d bytes", at, maxExpression)
	}
	if w := e.Why; w != nil && w.RootCause == nil && w.Message == nil {
		d.failAt(e.Position, "%s.why: rootCause or message is required", at)
	}
	if len(e.Order) == 1 {
		d.failAt(e.Position, "%s.order: at least two objects are required", at)
	}
}

// set returns the names of the assertions that are set.
func (e *Expectation) set() []string {
	var names []string
	v := reflect.ValueOf(e).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("field"); name != "" && !v.Field(i).IsZero() {
			names = append(names, name)
		}
	}
	return names
}

// Check compiles the expressions of tests.
func Check(ctx context.Context, evaluator expression.Evaluator, tests []Test) error {
	var request expression.Request
	var at []Position
	for _, t := range tests {
		for _, s := range t.Steps {
			for _, e := range s.Expect {
				if e.Value != nil {
					request.Expressions, at = append(request.Expressions, e.Value.expression()), append(at, e.Position)
				}
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	answers, err := evaluator.Evaluate(ctx, request)
	if err != nil {
		return err
	}
	var invalid InvalidError
	for i, a := range answers {
		if a.Error != "" {
			invalid.Problems = append(invalid.Problems, fmt.Sprintf("%s: invalid expression %q: %s", at[i], request.Expressions[i].Text, a.Error))
		}
	}
	if len(invalid.Problems) > 0 {
		return &invalid
	}
	return nil
}
