// Package expression defines the job with which the helper process evaluates CEL expressions
// over objects.
package expression

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job of the helper process that evaluates expressions, and the argument of its process.
const Job helper.Call[Request, []Answer] = "expression"

// Environment is the set of variables and functions that an expression may use.
type Environment string

const (
	// Objects is the environment of expressions over the variable object, with the functions of Kubernetes.
	Objects Environment = ""
	// Health is the environment of spec.healthCheckExprs. The controllers parse these expressions without checking types
	// and names.
	Health Environment = "health"
	// Dependency is the environment of readyExpr: the variables self and dep.
	Dependency Environment = "dependency"
)

// Expression is a CEL expression. Only those in the environment Objects can be evaluated.
type Expression struct {
	Text string `json:"text"`
	// Boolean is set if the value has to be true or false.
	Boolean     bool        `json:"boolean,omitempty"`
	Environment Environment `json:"environment,omitempty"`
}

// Request has expressions to compile and, with an object, to evaluate.
type Request struct {
	Expressions []Expression    `json:"expressions"`
	Object      json.RawMessage `json:"object,omitempty"`
}

// Answer is the result of an expression.
type Answer struct {
	// Value is nil without an object.
	Value json.RawMessage `json:"value,omitempty"`
	// Error is why the expression is invalid or has no value, or "".
	Error string `json:"error,omitempty"`
}

// Evaluator compiles and evaluates expressions.
type Evaluator interface {
	// Evaluate returns an answer to each expression.
	Evaluate(ctx context.Context, r Request) ([]Answer, error)
}

// Client implements Evaluator in a helper process.
type Client struct{ process *helper.Process }

// New returns the client of a pool.
func New(pool *helper.Pool) Client {
	return Client{helper.Shared(pool, string(Job), func() *helper.Process { return pool.Process("", pool.Named(), string(Job)) })}
}

// Evaluate implements Evaluator.
func (c Client) Evaluate(ctx context.Context, r Request) ([]Answer, error) {
	answers, err := Job.Do(ctx, c.process, "evaluating expressions", r)
	if err == nil && len(answers) != len(r.Expressions) {
		err = errors.New("evaluating expressions: wrong number of results")
	}
	return answers, err
}
