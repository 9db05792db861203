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

// The groups of the help of flux.
const (
	groupInstall   = "install"
	groupInspect   = "inspect"
	groupOperate   = "operate"
	groupAuthor    = "author"
	groupArtifacts = "artifacts"
	groupTools     = "tools"
)

// groups returns the groups of the help of flux, in its order.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupInstall, Title: "Bootstrap and Install Commands:"},
		{ID: groupInspect, Title: "Inspect Commands:"},
		{ID: groupOperate, Title: "Operate Commands:"},
		{ID: groupAuthor, Title: "Author Commands:"},
		{ID: groupArtifacts, Title: "Artifact Commands:"},
		{ID: groupTools, Title: "Tools:"},
	}
}

// word is a command directly below flux.
type word struct {
	name string
	// group is where the help of flux lists the command; hidden ones have none.
	group string
	make  func(*app.App) *cobra.Command
	// whole commands are about all others too.
	whole bool
}

// command makes the command, in its group.
func (w word) command(a *app.App) *cobra.Command {
	cmd := w.make(a)
	cmd.GroupID = w.group
	return cmd
}

// commands lists what stands directly below flux.
func commands() []word {
	return []word{
		{name: "bootstrap", group: groupInstall, make: bootstrap.NewCommand},
		{name: "build", group: groupAuthor, make: build.NewCommand},
		{name: "check", group: groupInstall, make: check.NewCommand},
		{name: "completion", group: groupTools, make: completion.NewCommand},
		{name: "create", group: groupAuthor, make: create.NewCommand},
		{name: "debug", group: groupInspect, make: debug.NewCommand},
		{name: "delete", group: groupOperate, make: delete.NewCommand},
		{name: "deps", group: groupInspect, make: deps.NewCommand},
		{name: "diff", group: groupAuthor, make: diff.NewCommand},
		{name: "docgen", make: docgen.NewCommand, whole: true},
		{name: "envsubst", group: groupAuthor, make: envsubst.NewCommand},
		{name: "events", group: groupInspect, make: events.NewCommand},
		{name: "export", group: groupAuthor, make: export.NewCommand},
		{name: "get", group: groupInspect, make: get.NewCommand},
		{name: "install", group: groupInstall, make: install.NewCommand},
		{name: "list", group: groupArtifacts, make: artifact.NewList},
		{name: "logs", group: groupInspect, make: logs.NewCommand},
		{name: "migrate", group: groupInstall, make: migrate.NewCommand},
		{name: "options", group: groupTools, make: newOptions},
		{name: "plugin", group: groupTools, make: plugin.NewCommand},
		{name: "pull", group: groupArtifacts, make: artifact.NewPull},
		{name: "push", group: groupArtifacts, make: artifact.NewPush},
		{name: "reconcile", group: groupOperate, make: reconcile.NewCommand},
		{name: "resume", group: groupOperate, make: resume.NewCommand},
		{name: "sandbox", group: groupTools, make: sandbox.NewCommand},
		{name: "stats", group: groupInspect, make: stats.NewCommand},
		{name: "status", group: groupInspect, make: status.NewCommand},
		{name: "suspend", group: groupOperate, make: suspend.NewCommand},
		{name: "tag", group: groupArtifacts, make: artifact.NewTag},
		{name: "trace", group: groupInspect, make: trace.NewCommand},
		{name: "tree", group: groupInspect, make: tree.NewCommand},
		{name: "trigger", group: groupOperate, make: trigger.NewCommand},
		{name: "uninstall", group: groupInstall, make: uninstall.NewCommand},
		{name: "version", group: groupTools, make: version.NewCommand},
		{name: "wait", group: groupOperate, make: wait.NewCommand},
		{name: "why", group: groupInspect, make: why.NewCommand},
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
			return []*cobra.Command{w.command(a)}
		}
	}
	for _, w := range commands() {
		all = append(all, w.command(a))
	}
	return all
}
