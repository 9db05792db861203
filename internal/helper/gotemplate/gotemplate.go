// Package gotemplate executes the Go templates of -o go-template in a helper process. text/template can call any
// exported method of any type, so a program that links it also contains unused methods: 11 MB in flux.
package gotemplate

import (
	"context"
	"encoding/json"

	"github.com/fluxkit/flux/internal/helper"
)

// Job executes a template.
const Job helper.Call[Input, string] = "go-template"

// Input is the input of Job.
type Input struct {
	Template string          `json:"template"`
	Object   json.RawMessage `json:"object"`
}

// Execute returns the text of a template for an object.
func Execute(ctx context.Context, pool *helper.Pool, template string, object json.RawMessage) (string, error) {
	p := helper.Shared(pool, string(Job), func() *helper.Process { return pool.Process("", pool.Named(), string(Job)) })
	return Job.Do(ctx, p, "executing the template", Input{template, object})
}
