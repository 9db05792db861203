package helper

import (
	"context"
	"encoding/json"
	"fmt"
)

// Call is the name of a job, with the types of its input and its output. flux calls Do, and
// flux-helper registers the Handler.
type Call[In, Out any] string

// Do runs the job in a process. The title describes the job in errors, for example "rendering chart podinfo". If the
// job fails, Do returns an *Error, or a *budget.ExceededError if a limit is exceeded.
func (c Call[In, Out]) Do(ctx context.Context, p *Process, title string, input In) (Out, error) {
	return c.DoWithQueries(ctx, p, title, input, nil)
}

// DoWithQueries is like Do, and calls respond for each query of the job.
func (c Call[In, Out]) DoWithQueries(ctx context.Context, p *Process, title string, input In, respond Responder) (output Out, err error) {
	encoded, err := json.Marshal(input)
	if err != nil {
		return output, fmt.Errorf("%s: %w", title, err)
	}
	result, err := p.do(ctx, string(c), title, encoded, respond)
	if err == nil {
		err = json.Unmarshal(result, &output)
	}
	return output, err
}

// Handler returns the handler that runs the job with a function.
func (c Call[In, Out]) Handler(run func(context.Context, In) (Out, error)) Handler {
	return c.QueryHandler(func(ctx context.Context, input In, _ Query) (Out, error) { return run(ctx, input) })
}

// QueryHandler is like Handler for a function that sends queries.
func (c Call[In, Out]) QueryHandler(run func(ctx context.Context, input In, query Query) (Out, error)) Handler {
	return Handler{string(c), func(ctx context.Context, encoded json.RawMessage, query Query) (any, error) {
		var input In
		if err := json.Unmarshal(encoded, &input); err != nil {
			return nil, err
		}
		return run(ctx, input, query)
	}}
}
