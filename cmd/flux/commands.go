package main

import "github.com/spf13/cobra"

// commands lists what stands directly below flux.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newBootstrap(a),
		newCheck(a),
		newCompletion(a),
		newCreate(a),
		newDelete(a),
		newDocgen(),
		newExport(a),
		newGet(a),
		newInstall(a),
		newReconcile(a),
		newResume(a),
		newSandbox(a),
		newSuspend(a),
		newTree(a),
		newUninstall(a),
		newVersion(a),
		newWait(a),
	}
}
