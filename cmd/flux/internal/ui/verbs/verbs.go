// Package verbs lists the commands that the dashboard runs: the pages about an object, and the actions.
package verbs

import (
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/live"
	"github.com/fluxkit/flux/pkg/reconcile"
	"github.com/fluxkit/flux/pkg/tree"
)

// Page is a page about an object: the output of a command.
type Page struct {
	Name, Key string
	// Has reports whether the page exists for a kind.
	Has func(controllers.Kind) bool
	// Args returns the arguments of the command. folded is set if healthy parts are omitted.
	Args func(row live.Row, folded bool) []string
}

func always(controllers.Kind) bool { return true }

// ofFlux reports whether a kind applies objects and is a Flux kind: only these can be compared with the
// cluster.
func ofFlux(k controllers.Kind) bool {
	return k.Applies() && slices.ContainsFunc(controllers.Kinds, func(other controllers.Kind) bool { return other.Kind == k.Kind })
}

// Pages lists the pages in the order of the tabs.
func Pages() []Page {
	subject := func(verb string, more ...string) func(live.Row, bool) []string {
		return func(row live.Row, _ bool) []string { return append([]string{verb, row.ID.String()}, more...) }
	}
	named := func(verb string, flags ...string) func(live.Row, bool) []string {
		return func(row live.Row, _ bool) []string {
			return append([]string{verb, row.Kind.Word, row.ID.Name, "--namespace=" + row.ID.Namespace}, flags...)
		}
	}
	return []Page{
		{"why", "w", always, subject("why")},
		{"tree", "t", func(k controllers.Kind) bool { return k.Has(controllers.Tree) }, func(row live.Row, folded bool) []string {
			args := []string{"tree", row.ID.String(), "--output=wide"}
			if folded && row.State != live.Ready {
				args = append(args, "--failed")
			}
			return args
		}},
		{"diff", "d", ofFlux, named("diff")},
		{"events", "v", always, func(row live.Row, _ bool) []string { return []string{"events", "--for=" + row.ID.String()} }},
		{"logs", "l", always, func(row live.Row, _ bool) []string {
			return []string{"logs", "--for=" + row.ID.String(), "--tail=200", "--follow"}
		}},
		{"pods", "L", func(k controllers.Kind) bool { return k.Applies() && k.Has(controllers.Tree) }, func(row live.Row, _ bool) []string {
			return []string{"logs", "--for=" + row.ID.String(), "--pods", "--tail=200", "--follow"}
		}},
		{"YAML", "Y", always, subject("get", "--output=yaml")},
		{"history", "h", func(k controllers.Kind) bool { return k.Has(controllers.History) }, subject("history")},
	}
}

// Action is a command that changes objects.
type Action struct {
	Key, Verb string
	Applies   controllers.Verb
	// If reports whether the action applies to an object. Else is the reason if it does not.
	If   func(live.Row) bool
	Else string
	// Effect describes the action. Options are the flags that the confirmation offers.
	Effect  string
	Options []Option
	// Fields are the flags with a value for which the confirmation prompts.
	Fields []Field
	// Preview is the flag with which the command prints its consequences without a change.
	Preview string
	Flags   []string
}

// Option is a flag that the confirmation offers with a key.
type Option struct {
	Key, Flag, Text string
	Applies         func(controllers.Kind) bool
}

// ComparesRevisions reports whether RevisionDiff supports a kind.
func ComparesRevisions(k controllers.Kind) bool { return ofFlux(k) && !k.Release }

// Revisions returns the revisions in the history of an object, newest first.
func Revisions(row live.Row) []string {
	var revisions []string
	for _, e := range (tree.Link{Kind: *row.Kind, Live: row.Object}).History() {
		if e.Revision != "" && !slices.Contains(revisions, e.Revision) {
			revisions = append(revisions, e.Revision)
		}
	}
	return revisions
}

// RevisionDiff returns the arguments of the command that prints the changes between two revisions of the source of an
// object.
func RevisionDiff(row live.Row, base, head string) []string {
	return []string{"diff", row.Kind.Word, row.ID.Name, "--namespace=" + row.ID.Namespace, "--base=" + base, "--revision=" + head}
}

// Field is a flag with a value. Check returns an error if the value is invalid, and may be nil.
type Field struct {
	Flag, Label string
	Check       func(value string, now time.Time) error
}

// Actions lists the actions.
func Actions() []Action {
	isActive := func(row live.Row) bool { return !row.Suspended }
	isRelease := func(k controllers.Kind) bool { return k.Release }
	return []Action{
		{
			Key: "r", Verb: "reconcile", Applies: controllers.Reconcile, Effect: "The controllers reconcile the current revision, and flux waits for the result.",
			If: isActive, Else: "is suspended: resume it first",
			Options: []Option{
				{"s", "--with-source", "the sources first", controllers.Kind.HasUpstream},
				{"f", "--force", "upgrade even without changes", isRelease},
				{"x", "--reset", "reset the failure counts", isRelease},
			},
		},
		{
			Key: "s", Verb: "suspend", Applies: controllers.Suspend, Effect: "The controllers do not reconcile it until it is resumed.",
			Fields: []Field{
				{"--reason", "reason (optional): ", nil},
				{"--until", "until, such as 2h or 2026-12-01T08:00:00Z (optional): ", func(value string, now time.Time) error {
					_, err := reconcile.Expiration(value, now)
					return err
				}},
			},
			If: isActive, Else: "is already suspended",
		},
		{
			Key: "u", Verb: "resume", Applies: controllers.Resume, Effect: "The controllers reconcile it again, and flux waits for the result.",
			If: func(row live.Row) bool { return row.Suspended }, Else: "is not suspended",
		},
		{
			Key: "ctrl+d", Verb: "delete", Applies: controllers.Delete, Effect: "The object is deleted from the cluster. Consequences:", Preview: "--dry-run", Flags: []string{"--yes"},
			If:      func(live.Row) bool { return true },
			Options: []Option{{"s", "--suspend-first", "keep the resources it manages", controllers.Kind.Applies}},
		},
	}
}
