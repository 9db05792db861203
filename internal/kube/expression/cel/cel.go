// Package cel evaluates CEL expressions with the Kubernetes CEL libraries and cost limits.
package cel

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/fluxkit/flux/internal/kube/expression"
)

// Job is the job that Evaluator runs.
const Job = expression.Job

// Evaluator implements expression.Evaluator. It caches compiled expressions.
type Evaluator struct {
	environments map[expression.Environment]func() (*cel.Env, error)

	mu       sync.Mutex
	compiled map[expression.Expression]compiled
}

type compiled struct {
	program cel.Program
	err     error
}

// New returns an evaluator.
func New() *Evaluator {
	return &Evaluator{
		environments: map[expression.Environment]func() (*cel.Env, error){
			expression.Objects: sync.OnceValues(newEnvironment),
			expression.Health:  sync.OnceValues(func() (*cel.Env, error) { return controllerEnvironment() }),
			expression.Dependency: sync.OnceValues(func() (*cel.Env, error) {
				return controllerEnvironment(cel.Variable("self", cel.ObjectType("google.protobuf.Struct")), cel.Variable("dep", cel.ObjectType("google.protobuf.Struct")))
			}),
		},
		compiled: map[expression.Expression]compiled{},
	}
}

// controllerEnvironment returns the environment of expressions in Flux objects.
func controllerEnvironment(variables ...cel.EnvOption) (*cel.Env, error) {
	return cel.NewEnv(append([]cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
	}, variables...)...)
}

func newEnvironment() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing expressions: %w", err)
	}
	return set.Env(environment.StoredExpressions)
}

// Evaluate implements expression.Evaluator.
func (e *Evaluator) Evaluate(ctx context.Context, r expression.Request) ([]expression.Result, error) {
	var object any
	if r.Object != nil {
		if err := utiljson.Unmarshal(r.Object, &object); err != nil {
			return nil, err
		}
	}
	answers := make([]expression.Result, len(r.Expressions))
	for i, x := range r.Expressions {
		program, err := e.compile(x)
		if err == nil && r.Object != nil {
			answers[i].Value, err = evaluate(ctx, program, x, object)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			answers[i] = expression.Result{Error: err.Error()}
		}
	}
	return answers, nil
}

func (e *Evaluator) compile(x expression.Expression) (cel.Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.compiled[x]; ok {
		return known.program, known.err
	}
	environment := e.environments[x.Environment]
	if environment == nil {
		return nil, fmt.Errorf("no environment %q", x.Environment)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	var c compiled
	c.program, c.err = compile(env, x)
	e.compiled[x] = c
	return c.program, c.err
}

func compile(env *cel.Env, x expression.Expression) (cel.Program, error) {
	compile := env.Compile
	if x.Environment == expression.Health {
		compile = env.Parse
	}
	ast, issues := compile(x.Text)
	if issues.Err() != nil {
		var all []string
		for _, problem := range issues.Errors() {
			all = append(all, problem.Message)
		}
		return nil, fmt.Errorf("%s", strings.Join(all, "; "))
	}
	// As in the controllers, a readyExpr whose type is unknown is invalid.
	if output := ast.OutputType(); x.Boolean && output != cel.BoolType && (output != cel.DynType || x.Environment == expression.Dependency) {
		return nil, fmt.Errorf("the value is of type %s, not bool", output)
	}
	return env.Program(ast, cel.CostLimit(limits.PerCallLimit), cel.InterruptCheckFrequency(limits.CheckFrequency), cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
}

func evaluate(ctx context.Context, program cel.Program, x expression.Expression, object any) (json.RawMessage, error) {
	value, _, err := program.ContextEval(ctx, map[string]any{"object": object})
	if err != nil {
		return nil, err
	}
	if _, ok := value.Value().(bool); x.Boolean && !ok {
		return nil, fmt.Errorf("the value is of type %s, not bool", value.Type().TypeName())
	}
	return encode(value)
}

// encode returns a value as JSON. Values of Kubernetes types, such as quantities, have no JSON form.
func encode(value ref.Val) (json.RawMessage, error) {
	native, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("the value is of type %s, which cannot be compared with equals", value.Type().TypeName())
	}
	message, ok := native.(*structpb.Value)
	if !ok {
		return nil, fmt.Errorf("the value is of type %s, which cannot be compared with equals", value.Type().TypeName())
	}
	return protojson.Marshal(message)
}
