package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// restartTime is the maximum duration of a restart, even on a busy machine.
const restartTime = 2 * time.Minute

// RestartAPIServer requests a restart of the API server from the supervisor, and returns when it
// is ready again.
func RestartAPIServer(ctx context.Context, folder state.Folder) error {
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	status, err := folder.LoadStatus()
	if err != nil {
		return err
	}
	if !status.Supervisor.Alive() {
		return fmt.Errorf("no sandbox is running in %s: start it with flux-sandbox up", folder)
	}
	before := apiServer(status).Identity
	if err := status.Supervisor.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	return await(ctx, folder, part.APIServer+" is ready", func(status state.Status) bool {
		server := apiServer(status)
		return server.Identity != before && server.Identity != (process.Identity{}) && server.Phase == state.Ready
	})
}

func apiServer(status state.Status) state.Part {
	if i := slices.IndexFunc(status.Parts, func(p state.Part) bool { return p.Name == part.APIServer }); i >= 0 {
		return status.Parts[i]
	}
	return state.Part{}
}
