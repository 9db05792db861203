package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// restartTime is the maximum time of a restart, also on a busy machine.
const restartTime = 2 * time.Minute

// RestartAPIServer lets the supervisor restart the API server, and returns when it is ready again.
func RestartAPIServer(ctx context.Context, folder state.Folder) error {
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	status, server, err := apiServer(folder)
	if err != nil {
		return err
	}
	if !status.Supervisor.Alive() {
		return fmt.Errorf("no sandbox is running in %s: start it with flux-sandbox up", folder)
	}
	before := server.Identity
	if err := status.Supervisor.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if status, server, err = apiServer(folder); err != nil {
			return err
		}
		switch {
		case status.Phase == state.Failed:
			return errors.New(status.Message)
		case server.Identity != before && server.Identity != (process.Identity{}) && server.Phase == state.Ready:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", part.APIServer, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func apiServer(folder state.Folder) (state.Status, state.Part, error) {
	status, err := folder.LoadStatus()
	if err != nil {
		return status, state.Part{}, err
	}
	i := slices.IndexFunc(status.Parts, func(p state.Part) bool { return p.Name == part.APIServer })
	if i < 0 {
		return status, state.Part{}, nil
	}
	return status, status.Parts[i], nil
}
