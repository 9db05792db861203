package main

import "github.com/spf13/cobra"

// word is a command directly below flux.
type word struct {
	name string
	make func(*app) *cobra.Command
	// whole commands are about all others too.
	whole bool
}

// commands lists what stands directly below flux.
func commands() []word {
	return []word{
		{name: "bootstrap", make: newBootstrap},
		{name: "build", make: newBuild},
		{name: "check", make: newCheck},
		{name: "completion", make: newCompletion},
		{name: "create", make: newCreate},
		{name: "debug", make: newDebug},
		{name: "delete", make: newDelete},
		{name: "deps", make: newDeps},
		{name: "diff", make: newDiff},
		{name: "docgen", make: newDocgen, whole: true},
		{name: "envsubst", make: newEnvsubst},
		{name: "events", make: newEvents},
		{name: "export", make: newExport},
		{name: "get", make: newGet},
		{name: "install", make: newInstall},
		{name: "list", make: newList},
		{name: "logs", make: newLogs},
		{name: "migrate", make: newMigrate},
		{name: "plugin", make: newPlugin},
		{name: "pull", make: newPull},
		{name: "push", make: newPush},
		{name: "reconcile", make: newReconcile},
		{name: "resume", make: newResume},
		{name: "sandbox", make: newSandbox},
		{name: "stats", make: newStats},
		{name: "status", make: newStatus},
		{name: "suspend", make: newSuspend},
		{name: "tag", make: newTag},
		{name: "trace", make: newTrace},
		{name: "tree", make: newTree},
		{name: "trigger", make: newTrigger},
		{name: "uninstall", make: newUninstall},
		{name: "version", make: newVersion},
		{name: "wait", make: newWait},
		{name: "why", make: newWhy},
	}
}

// needed makes the commands that a command line can be about. There are 200 of
// them and a line names one, so where its first word is a command the others
// are left out: making them costs a good part of what one request does.
func needed(a *app, args []string) []*cobra.Command {
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
