package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Logs copies the output of a component, or of the newest pod of a controller. With
// follow, it continues until ctx is canceled.
func Logs(ctx context.Context, folder state.Folder, name string, follow bool, out io.Writer) error {
	path, clean := folder.Log(name), func(line string) string { return line }
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		pod, err := newestPod(folder, name)
		if err != nil {
			return err
		}
		if pod.LogFile == "" {
			return fmt.Errorf("no component or controller %q in the sandbox in %s: see flux-sandbox status", name, folder)
		}
		path, clean = pod.LogFile, message
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", name, err)
	}
	err = copyLines(ctx, file, follow, clean, out)
	return errors.Join(err, file.Close())
}

func copyLines(ctx context.Context, file io.Reader, follow bool, clean func(string) string, out io.Writer) error {
	reader, rest := bufio.NewReader(file), ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		line, err := reader.ReadString('\n')
		rest += line
		if err == nil {
			if _, err := io.WriteString(out, clean(rest)); err != nil {
				return err
			}
			rest = ""
			continue
		}
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading a log: %w", err)
		}
		if !follow {
			_, err := io.WriteString(out, clean(rest))
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// message removes the time, stream and tag from a line in the container runtime log
// format.
func message(line string) string {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) < 4 {
		return line
	}
	return fields[3]
}

func newestPod(folder state.Folder, controller string) (state.Pod, error) {
	records, err := filepath.Glob(filepath.Join(folder.Pods(), "*", "pod.json"))
	if err != nil {
		return state.Pod{}, fmt.Errorf("listing the logs of pods: %w", err)
	}
	var newest state.Pod
	for _, path := range records {
		pod, err := state.LoadPod(path)
		if err != nil {
			return state.Pod{}, err
		}
		if pod.Controller == controller && pod.Started.After(newest.Started) {
			newest = pod
		}
	}
	return newest, nil
}
