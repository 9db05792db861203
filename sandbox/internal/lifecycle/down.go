package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// supervisorGrace is longer than the grace periods of all components, which are stopped stage by stage.
const supervisorGrace = 60 * time.Second

// Down stops the sandbox and returns when all of its processes have exited. With purge, it also removes
// the directory. Down succeeds if the sandbox is not running.
func Down(ctx context.Context, folder state.Folder, purge bool, progress io.Writer) error {
	if _, err := os.Stat(string(folder)); errors.Is(err, os.ErrNotExist) {
		return say(progress, "✔ no sandbox in %s", folder)
	}
	if purge && !folder.Exists() {
		return fmt.Errorf("%s is not a sandbox directory and is not removed: check --dir", folder)
	}
	lock, err := folder.WaitLock(ctx, commandLock)
	if err != nil {
		return err
	}
	err = down(ctx, folder, progress)
	if err == nil && purge {
		err = os.RemoveAll(string(folder))
	}
	if err := errors.Join(err, lock.Close()); err != nil {
		return err
	}
	if !purge {
		// The lock files are removed last, so that no other command can run in the meantime.
		return errors.Join(remove(folder.Path(supervisorLock+".lock")), remove(folder.Path(commandLock+".lock")))
	}
	return say(progress, "✔ removed %s", folder)
}

func down(ctx context.Context, folder state.Folder, progress io.Writer) error {
	status, err := folder.LoadStatus()
	if err != nil {
		return err
	}
	if status.Supervisor.PID == 0 && !folder.Held(supervisorLock) {
		return say(progress, "✔ the sandbox in %s is not running", folder)
	}
	if err := say(progress, "► stopping the sandbox in %s", folder); err != nil {
		return err
	}
	if err := clear(ctx, folder, progress); err != nil {
		return err
	}
	if err := folder.RemoveStatus(); err != nil {
		return err
	}
	return say(progress, "✔ the sandbox is stopped")
}

// clear stops the supervisor, which stops its components, and then the remaining processes of this or
// an earlier run, which it finds by their recorded identities.
func clear(ctx context.Context, folder state.Folder, progress io.Writer) error {
	status, err := folder.LoadStatus()
	if err != nil {
		return err
	}
	if err := status.Supervisor.End(ctx, supervisorGrace); err != nil {
		return fmt.Errorf("stopping the supervisor: %w", err)
	}
	left, err := leftovers(folder)
	if err != nil {
		return err
	}
	for _, id := range left {
		if !id.Alive() {
			continue
		}
		if err := say(progress, "► stopping process %d of a crashed run", id.PID); err != nil {
			return err
		}
		if err := id.End(ctx, 10*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// leftovers lists the processes to stop: first the controllers, then the components in
// reverse order of their start, so that clients stop before their servers.
func leftovers(folder state.Folder) ([]process.Identity, error) {
	records, err := filepath.Glob(filepath.Join(folder.Pods(), "*", "process.json"))
	if err != nil {
		return nil, fmt.Errorf("listing the processes of pods: %w", err)
	}
	var ids []process.Identity
	for _, record := range records {
		id, err := state.LoadIdentity(record)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	status, err := folder.LoadStatus()
	if err != nil {
		return nil, err
	}
	for i := len(status.Parts) - 1; i >= 0; i-- {
		ids = append(ids, status.Parts[i].Identity)
	}
	return ids, nil
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func say(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, format+"\n", args...)
	return err
}
