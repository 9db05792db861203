package cli

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/artifact"
	"github.com/fluxkit/flux/internal/cli/bootstrap"
	"github.com/fluxkit/flux/internal/cli/build"
	"github.com/fluxkit/flux/internal/cli/check"
	"github.com/fluxkit/flux/internal/cli/completion"
	"github.com/fluxkit/flux/internal/cli/create"
	"github.com/fluxkit/flux/internal/cli/debug"
	"github.com/fluxkit/flux/internal/cli/delete"
	"github.com/fluxkit/flux/internal/cli/deps"
	"github.com/fluxkit/flux/internal/cli/diff"
	"github.com/fluxkit/flux/internal/cli/docgen"
	"github.com/fluxkit/flux/internal/cli/envsubst"
	"github.com/fluxkit/flux/internal/cli/events"
	"github.com/fluxkit/flux/internal/cli/export"
	"github.com/fluxkit/flux/internal/cli/get"
	"github.com/fluxkit/flux/internal/cli/install"
	"github.com/fluxkit/flux/internal/cli/logs"
	"github.com/fluxkit/flux/internal/cli/migrate"
	"github.com/fluxkit/flux/internal/cli/plugin"
	"github.com/fluxkit/flux/internal/cli/reconcile"
	"github.com/fluxkit/flux/internal/cli/resume"
	"github.com/fluxkit/flux/internal/cli/sandbox"
	"github.com/fluxkit/flux/internal/cli/stats"
	"github.com/fluxkit/flux/internal/cli/status"
	"github.com/fluxkit/flux/internal/cli/suspend"
	"github.com/fluxkit/flux/internal/cli/trace"
	"github.com/fluxkit/flux/internal/cli/tree"
	"github.com/fluxkit/flux/internal/cli/trigger"
	"github.com/fluxkit/flux/internal/cli/uninstall"
	"github.com/fluxkit/flux/internal/cli/version"
	"github.com/fluxkit/flux/internal/cli/wait"
	"github.com/fluxkit/flux/internal/cli/why"
)

// word is a command directly below flux.
type word struct {
	name string
	make func(*app.App) *cobra.Command
	// whole commands are about all others too.
	whole bool
}

// commands lists what stands directly below flux.
func commands() []word {
	return []word{
		{name: "bootstrap", make: bootstrap.NewCommand},
		{name: "build", make: build.NewCommand},
		{name: "check", make: check.NewCommand},
		{name: "completion", make: completion.NewCommand},
		{name: "create", make: create.NewCommand},
		{name: "debug", make: debug.NewCommand},
		{name: "delete", make: delete.NewCommand},
		{name: "deps", make: deps.NewCommand},
		{name: "diff", make: diff.NewCommand},
		{name: "docgen", make: docgen.NewCommand, whole: true},
		{name: "envsubst", make: envsubst.NewCommand},
		{name: "events", make: events.NewCommand},
		{name: "export", make: export.NewCommand},
		{name: "get", make: get.NewCommand},
		{name: "install", make: install.NewCommand},
		{name: "list", make: artifact.NewList},
		{name: "logs", make: logs.NewCommand},
		{name: "migrate", make: migrate.NewCommand},
		{name: "plugin", make: plugin.NewCommand},
		{name: "pull", make: artifact.NewPull},
		{name: "push", make: artifact.NewPush},
		{name: "reconcile", make: reconcile.NewCommand},
		{name: "resume", make: resume.NewCommand},
		{name: "sandbox", make: sandbox.NewCommand},
		{name: "stats", make: stats.NewCommand},
		{name: "status", make: status.NewCommand},
		{name: "suspend", make: suspend.NewCommand},
		{name: "tag", make: artifact.NewTag},
		{name: "trace", make: trace.NewCommand},
		{name: "tree", make: tree.NewCommand},
		{name: "trigger", make: trigger.NewCommand},
		{name: "uninstall", make: uninstall.NewCommand},
		{name: "version", make: version.NewCommand},
		{name: "wait", make: wait.NewCommand},
		{name: "why", make: why.NewCommand},
	}
}

// commandNames are the words of all commands.
func commandNames() []string {
	var all []string
	for _, w := range commands() {
		all = append(all, w.name)
	}
	return all
}

// needed makes the commands that a command line can be about. There are 200 of
// them and a line names one, so where its first word is a command the others
// are left out: making them costs a good part of what one request does.
func needed(a *app.App, args []string) []*cobra.Command {
	var all []*cobra.Command
	for _, w := range commands() {
		if len(args) > 0 && args[0] == w.name && !w.whole {
			return []*cobra.Command{w.make(a)}
		}
	}
	for _, w := range commands() {
		all = append(all, w.make(a))
	}
	return all
}
