package report

import (
	"fmt"
	"strings"
	"sync"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The results of a change.
const (
	ResultCreated    = "created"
	ResultConfigured = "configured"
	ResultSuspended  = "suspended"
	ResultResumed    = "resumed"
	ResultDeleted    = "deleted"
	ResultUnchanged  = "unchanged"
	ResultFailed     = "failed"
)

// ChangeResult is the change that a command made to an object, in JSON and YAML. Its field names
// match Outcome.
type ChangeResult struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Result    string `json:"result"`
	// DryRun is set if the change was not made.
	DryRun bool `json:"dryRun,omitempty"`
	// Error is the failure.
	Error string `json:"error,omitempty"`
}

// Results holds the results of a command in the order of its targets.
type Results struct {
	// place maps the key of a target to its index in the list.
	place map[string]int
	mu    sync.Mutex
	list  []ChangeResult
}

// NewResults returns empty results for targets.
func NewResults(targets []objref.Target) *Results {
	r := &Results{place: map[string]int{}, list: []ChangeResult{}}
	for i, t := range targets {
		r.place[t.Key()] = i
		r.list = append(r.list, ChangeResult{Kind: t.Kind.Kind, Namespace: t.Namespace, Name: t.Name})
	}
	return r
}

// Set stores the result of a target, ResultFailed if err is not nil.
func (r *Results) Set(t objref.Target, result string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.place[t.Key()]
	r.list[i].Result = result
	if err != nil {
		message, _ := clierr.Explain(err, nil)
		r.list[i].Result, r.list[i].Error = ResultFailed, redact.Text(message)
	}
}

// List returns the results.
func (r *Results) List() []ChangeResult { return r.list }

// Changed returns the targets that have not failed.
func (r *Results) Changed(targets []objref.Target) []objref.Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	var done []objref.Target
	for _, t := range targets {
		if r.list[r.place[t.Key()]].Result != ResultFailed {
			done = append(done, t)
		}
	}
	return done
}

// PrintNames prints kind.group/name, a line for each target.
func PrintNames(a *app.App, targets []objref.Target) error {
	for _, t := range targets {
		if err := a.Printf("%s/%s\n", resourceName(t.Kind), t.Name); err != nil {
			return err
		}
	}
	return nil
}

// resourceName returns the kind in the format of -o name, such as
// kustomization.kustomize.toolkit.fluxcd.io.
func resourceName(k controllers.Kind) string { return strings.ToLower(k.Kind) + "." + k.Group }

// Label formats a target for messages, with its namespace if many is set.
func Label(t objref.Target, many bool) string {
	if many {
		return fmt.Sprintf("%s %s/%s", t.Kind.Noun(), t.Namespace, t.Name)
	}
	return t.Kind.Noun() + " " + t.Name
}
