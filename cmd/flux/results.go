package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The results of a change.
const (
	resultCreated    = "created"
	resultConfigured = "configured"
	resultSuspended  = "suspended"
	resultResumed    = "resumed"
	resultDeleted    = "deleted"
	resultUnchanged  = "unchanged"
	resultFailed     = "failed"
)

// changeResult is what a command has done to an object, as programs read it.
// Its fields are called as those of objectOutcome.
type changeResult struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Result    string `json:"result"`
	// DryRun is set where Result is what would be done.
	DryRun bool `json:"dryRun,omitempty"`
	// Error is why Result is failed.
	Error string `json:"error,omitempty"`
}

// results has the result of each target of a command, in their order.
type results struct {
	targets []target
	// place is where a target stands in the list, by its key.
	place map[string]int
	mu    sync.Mutex
	list  []changeResult
}

func newResults(targets []target) *results {
	r := &results{targets: targets, place: map[string]int{}, list: []changeResult{}}
	for i, t := range targets {
		r.place[t.key()] = i
		r.list = append(r.list, changeResult{Kind: t.kind.Kind, Namespace: t.namespace, Name: t.name})
	}
	return r
}

// set notes the result of a target; an error makes it failed.
func (r *results) set(t target, result string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.place[t.key()]
	r.list[i].Result = result
	if err != nil {
		message, _ := explain(err, nil)
		r.list[i].Result, r.list[i].Error = resultFailed, redact.Text(message)
	}
}

// changed are the targets that have not failed.
func (r *results) changed() []target {
	var done []target
	for i, t := range r.targets {
		if r.list[i].Result != resultFailed {
			done = append(done, t)
		}
	}
	return done
}

const resultFormats = "json, yaml or name"

func addResultFormat(fs *pflag.FlagSet, format *string) {
	fs.StringVarP(format, "output", "o", "", "print the result for each object: "+resultFormats)
}

func completeResultFormat(cmd *cobra.Command) {
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"json", "yaml", "name"}, cobra.ShellCompDirectiveNoFileComp))
}

func checkResultFormat(format string) error {
	if slices.Contains([]string{"", "json", "yaml", "name"}, format) {
		return nil
	}
	return fmt.Errorf("output format %q is not known: use %s", format, resultFormats)
}

// printResults writes the results to standard output: a list also of one, and
// for name a line for each object that has not failed.
func (a *app) printResults(format string, r *results) error {
	if format == "name" {
		return a.printNames(r.changed())
	}
	if format == "" {
		return nil
	}
	return a.encode(format, r.list)
}

func (a *app) printNames(targets []target) error {
	for _, t := range targets {
		if err := a.printf("%s/%s\n", resourceName(t.kind), t.name); err != nil {
			return err
		}
	}
	return nil
}

// resourceName is the kind as -o name prints it, such as
// kustomization.kustomize.toolkit.fluxcd.io.
func resourceName(k controllers.Kind) string { return strings.ToLower(k.Kind) + "." + k.Group }

// shown is how a message calls a target: with its namespace where there are many.
func shown(t target, many bool) string {
	if many {
		return fmt.Sprintf("%s %s/%s", t.kind.Noun(), t.namespace, t.name)
	}
	return t.kind.Noun() + " " + t.name
}
