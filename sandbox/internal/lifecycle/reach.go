package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// reachTime is the maximum time until an address is reachable, even on a busy machine.
const reachTime = time.Minute

// Reach makes an address of this machine available to the components of an isolated sandbox, and returns when it is
// reachable.
func Reach(ctx context.Context, folder state.Folder, address string) error {
	if parsed, err := netip.ParseAddrPort(address); err != nil || !parsed.Addr().IsLoopback() || parsed.Port() == 0 {
		return fmt.Errorf("invalid address %q: must be a loopback address with a port, e.g. 127.0.0.1:8879", address)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	isolated, err := allow(ctx, folder, address)
	if err != nil || !isolated {
		return err // without isolation, all addresses are available
	}
	return await(ctx, folder, "the sandbox reaches "+address, func(status state.Status) bool { return slices.Contains(status.Reached, address) })
}

// await waits until the status of a running sandbox meets a condition.
func await(ctx context.Context, folder state.Folder, what string, done func(state.Status) bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := folder.LoadStatus()
		switch {
		case err != nil:
			return err
		case status.Phase == state.Failed:
			return errors.New(status.Message)
		case done(status):
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// allow adds the address to the configuration, and notifies the supervisor.
func allow(ctx context.Context, folder state.Folder, address string) (isolated bool, err error) {
	lock, err := folder.WaitLock(ctx, commandLock)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	status, err := folder.LoadStatus()
	if err != nil {
		return false, err
	}
	if !status.Supervisor.Alive() {
		return false, fmt.Errorf("no sandbox is running in %s: start it with flux-sandbox up", folder)
	}
	config, err := folder.LoadConfig()
	if err != nil || !config.Isolated {
		return false, err
	}
	if !slices.Contains(config.Reachable, address) {
		config.Reachable = append(config.Reachable, address)
	}
	return true, errors.Join(folder.SaveConfig(config), status.Supervisor.Signal(syscall.SIGUSR2))
}
