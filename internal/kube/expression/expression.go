// Package expression defines the helper process job that evaluates CEL expressions on objects.
package expression

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job of the helper process that evaluates expressions, and the argument of its process.
const Job helper.Call[Request, []Result] = "expression"

// Environment identifies the variables and functions that an expression may use.
type Environment string

const (
	// Objects is the environment of expressions with the variable object and the Kubernetes CEL functions.
	Objects Environment = ""
	// Health is the environment of spec.healthCheckExprs. The controllers parse these expressions without checking types
	// and names.
	Health Environment = "health"
	// Dependency is the environment of readyExpr: the variables self and dep.
	Dependency Environment = "dependency"
)

// Expression is a CEL expression. Only expressions in the environment Objects can be evaluated.
type Expression struct {
	Text string `json:"text"`
	// Boolean is set if the value must be true or false.
	Boolean     bool        `json:"boolean,omitempty"`
	Environment Environment `json:"environment,omitempty"`
}

// Request contains the expressions to compile and, if Object is set, to evaluate.
type Request struct {
	Expressions []Expression    `json:"expressions"`
	Object      json.RawMessage `json:"object,omitempty"`
}

// Result is the result of an expression.
type Result struct {
	// Value is nil without an object.
	Value json.RawMessage `json:"value,omitempty"`
	// Error describes why the expression is invalid or has no value, or is "".
	Error string `json:"error,omitempty"`
}

// Evaluator compiles and evaluates expressions.
type Evaluator interface {
	// Evaluate returns one result for each expression.
	Evaluate(ctx context.Context, r Request) ([]Result, error)
}

// Client implements Evaluator in a helper process.
type Client struct{ process *helper.Process }

// New returns the client of a pool.
func New(pool *helper.Pool) Client {
	return Client{helper.Shared(pool, string(Job), func() *helper.Process { return pool.Process("", pool.Named(), string(Job)) })}
}

// Evaluate implements Evaluator.
func (c Client) Evaluate(ctx context.Context, r Request) ([]Result, error) {
	answers, err := Job.Do(ctx, c.process, "evaluating expressions", r)
	if err == nil && len(answers) != len(r.Expressions) {
		err = errors.New("evaluating expressions: wrong number of results")
	}
	return answers, err
}
