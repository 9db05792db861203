package root

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/artifact"
	"github.com/fluxkit/flux/cmd/flux/internal/audit"
	"github.com/fluxkit/flux/cmd/flux/internal/bisect"
	"github.com/fluxkit/flux/cmd/flux/internal/bootstrap"
	"github.com/fluxkit/flux/cmd/flux/internal/build"
	"github.com/fluxkit/flux/cmd/flux/internal/check"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/completion"
	"github.com/fluxkit/flux/cmd/flux/internal/create"
	"github.com/fluxkit/flux/cmd/flux/internal/debug"
	"github.com/fluxkit/flux/cmd/flux/internal/delete"
	"github.com/fluxkit/flux/cmd/flux/internal/deps"
	"github.com/fluxkit/flux/cmd/flux/internal/diff"
	"github.com/fluxkit/flux/cmd/flux/internal/docgen"
	"github.com/fluxkit/flux/cmd/flux/internal/envsubst"
	"github.com/fluxkit/flux/cmd/flux/internal/events"
	"github.com/fluxkit/flux/cmd/flux/internal/export"
	"github.com/fluxkit/flux/cmd/flux/internal/get"
	"github.com/fluxkit/flux/cmd/flux/internal/history"
	"github.com/fluxkit/flux/cmd/flux/internal/install"
	"github.com/fluxkit/flux/cmd/flux/internal/logs"
	"github.com/fluxkit/flux/cmd/flux/internal/migrate"
	"github.com/fluxkit/flux/cmd/flux/internal/orphans"
	"github.com/fluxkit/flux/cmd/flux/internal/plugin"
	"github.com/fluxkit/flux/cmd/flux/internal/reconcile"
	"github.com/fluxkit/flux/cmd/flux/internal/record"
	"github.com/fluxkit/flux/cmd/flux/internal/rehearse"
	"github.com/fluxkit/flux/cmd/flux/internal/replay"
	"github.com/fluxkit/flux/cmd/flux/internal/resume"
	"github.com/fluxkit/flux/cmd/flux/internal/rollback"
	"github.com/fluxkit/flux/cmd/flux/internal/sandbox"
	"github.com/fluxkit/flux/cmd/flux/internal/stats"
	"github.com/fluxkit/flux/cmd/flux/internal/status"
	"github.com/fluxkit/flux/cmd/flux/internal/suspend"
	"github.com/fluxkit/flux/cmd/flux/internal/test"
	"github.com/fluxkit/flux/cmd/flux/internal/trace"
	"github.com/fluxkit/flux/cmd/flux/internal/tree"
	"github.com/fluxkit/flux/cmd/flux/internal/trigger"
	"github.com/fluxkit/flux/cmd/flux/internal/ui"
	"github.com/fluxkit/flux/cmd/flux/internal/uninstall"
	"github.com/fluxkit/flux/cmd/flux/internal/validate"
	"github.com/fluxkit/flux/cmd/flux/internal/version"
	"github.com/fluxkit/flux/cmd/flux/internal/wait"
	"github.com/fluxkit/flux/cmd/flux/internal/why"
)

// The command groups in the help of flux.
const (
	groupInstall   = "install"
	groupInspect   = "inspect"
	groupOperate   = "operate"
	groupAuthor    = "author"
	groupArtifacts = "artifacts"
	groupTools     = "tools"
	groupTopics    = "topics"
)

// groups returns the command groups in the order of the help.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupInstall, Title: "Bootstrap and Install Commands:"},
		{ID: groupInspect, Title: "Inspect Commands:"},
		{ID: groupOperate, Title: "Operate Commands:"},
		{ID: groupAuthor, Title: "Author Commands:"},
		{ID: groupArtifacts, Title: "Artifact Commands:"},
		{ID: groupTools, Title: "Tools:"},
		{ID: groupTopics, Title: "Help Topics:"},
	}
}

// subcommand is a subcommand of the root command.
type subcommand struct {
	name string
	// group is the ID of the command group in the help of flux, "" for a hidden
	// command.
	group string
	make  func(*app.App) *cobra.Command
	// needsAll is true for a command that describes all other commands.
	needsAll bool
}

// command returns the command with its group.
func (s subcommand) command(a *app.App) *cobra.Command {
	cmd := s.make(a)
	cmd.GroupID = s.group
	addExamples(cmd)
	return cmd
}

// addExamples adds the first examples of two subcommands to each command without examples.
func addExamples(cmd *cobra.Command) {
	var examples []string
	for _, c := range cmd.Commands() {
		addExamples(c)
		if first, _, _ := strings.Cut(c.Example, "\n\n"); first != "" && len(examples) < 2 {
			examples = append(examples, first)
		}
	}
	if cmd.Example == "" {
		cmd.Example = strings.Join(examples, "\n\n")
	}
}

// commands lists the subcommands of the root command.
func commands() []subcommand {
	return []subcommand{
		{name: "bisect", group: groupAuthor, make: bisect.NewCommand},
		{name: "bootstrap", group: groupInstall, make: bootstrap.NewCommand},
		{name: "build", group: groupAuthor, make: build.NewCommand},
		{name: "check", group: groupInstall, make: check.NewCommand},
		{name: "completion", group: groupTools, make: completion.NewCommand},
		{name: "create", group: groupAuthor, make: create.NewCommand},
		{name: "debug", group: groupInspect, make: debug.NewCommand},
		{name: "delete", group: groupOperate, make: delete.NewCommand},
		{name: "deps", group: groupInspect, make: deps.NewCommand},
		{name: "diff", group: groupAuthor, make: diff.NewCommand},
		{name: "docgen", make: docgen.NewCommand, needsAll: true},
		{name: "envsubst", group: groupAuthor, make: envsubst.NewCommand},
		{name: "events", group: groupInspect, make: events.NewCommand},
		{name: "export", group: groupAuthor, make: export.NewCommand},
		{name: "get", group: groupInspect, make: get.NewCommand},
		{name: "history", group: groupInspect, make: history.NewCommand},
		{name: "install", group: groupInstall, make: install.NewCommand},
		{name: "list", group: groupArtifacts, make: artifact.NewList},
		{name: "logs", group: groupInspect, make: logs.NewCommand},
		{name: "migrate", group: groupInstall, make: migrate.NewCommand},
		{name: "options", group: groupTools, make: newOptions},
		{name: "orphans", group: groupInspect, make: orphans.NewCommand},
		{name: "plugin", group: groupTools, make: plugin.NewCommand},
		{name: "pull", group: groupArtifacts, make: artifact.NewPull},
		{name: "push", group: groupArtifacts, make: artifact.NewPush},
		{name: "reconcile", group: groupOperate, make: reconcile.NewCommand},
		{name: "record", group: groupInspect, make: record.NewCommand},
		{name: "rehearse", group: groupInstall, make: rehearse.NewCommand},
		{name: "replay", group: groupInspect, make: replay.NewCommand},
		{name: "resume", group: groupOperate, make: resume.NewCommand},
		{name: "rollback", group: groupOperate, make: rollback.NewCommand},
		{name: "sandbox", group: groupTools, make: sandbox.NewCommand},
		{name: "stats", group: groupInspect, make: stats.NewCommand},
		{name: "status", group: groupInspect, make: status.NewCommand},
		{name: "suspend", group: groupOperate, make: suspend.NewCommand},
		{name: "tag", group: groupArtifacts, make: artifact.NewTag},
		{name: "test", group: groupAuthor, make: test.NewCommand},
		{name: "trace", group: groupInspect, make: trace.NewCommand},
		{name: "tree", group: groupInspect, make: tree.NewCommand},
		{name: "trigger", group: groupOperate, make: trigger.NewCommand},
		{name: "ui", group: groupOperate, make: ui.NewCommand},
		{name: "uninstall", group: groupInstall, make: uninstall.NewCommand},
		{name: "validate", group: groupAuthor, make: validate.NewCommand},
		{name: "audit", group: groupAuthor, make: audit.NewCommand},
		{name: "version", group: groupTools, make: version.NewCommand},
		{name: "wait", group: groupOperate, make: wait.NewCommand},
		{name: "why", group: groupInspect, make: why.NewCommand},

		{name: "audit-rules", group: groupTopics, make: newTopic("audit-rules", "Rules of flux audit and how to exclude them", audit.Topic)},
		{name: "clusters", group: groupTopics, make: newTopic("clusters", "Commands on several clusters", clustersTopic)},
		{name: "dangers", group: groupTopics, make: newTopic("dangers", "Changes that flux diff warns about", diff.DangersTopic)},
		{name: "diagnosis", group: groupTopics, make: newTopic("diagnosis", "How flux why checks resources", diagnosisTopic)},
		{name: "environment", group: groupTopics, make: newTopic("environment", "Environment variables and the configuration file", environmentTopic)},
		{name: "exit-codes", group: groupTopics, make: newExitCodes, needsAll: true},
		{name: "flux-operator", group: groupTopics, make: newTopic("flux-operator", "Repositories with FluxInstances and ResourceSets", operatorTopic)},
		{name: "formatting", group: groupTopics, make: newTopic("formatting", "Output formats, tables and colors", formattingTopic)},
		{name: "pull-requests", group: groupTopics, make: newTopic("pull-requests", "How flux diff --base compares pull requests", pullRequestsTopic)},
		{name: "selectors", group: groupTopics, make: newTopic("selectors", "Selection of objects by name, kind, label and status", selectorsTopic)},
		{name: "testing", group: groupTopics, make: newTopic("testing", "How flux test runs a repository in a sandbox", testingTopic)},
		{name: "timeline", group: groupTopics, make: newTopic("timeline", "Order of the changes to a cluster", timelineTopic)},
		{name: "validation", group: groupTopics, make: newTopic("validation", "How flux validate checks manifests", validationTopic)},
	}
}

// commandNames returns the names of the subcommands of the root command.
func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// subcommands returns the subcommand that the first argument selects, none for --version, or all of them.
// Building all 200 commands would noticeably delay every start, and takes 4 MiB.
func subcommands(a *app.App, args []string) []*cobra.Command {
	if slices.Equal(args, []string{"--version"}) {
		return nil
	}
	for _, c := range commands() {
		if len(args) > 0 && args[0] == c.name && !c.needsAll {
			return []*cobra.Command{c.command(a)}
		}
	}
	var all []*cobra.Command
	for _, c := range commands() {
		all = append(all, c.command(a))
	}
	return all
}
