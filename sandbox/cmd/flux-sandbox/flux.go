package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/controller"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// listTime limits how long flux takes to list its embedded versions.
const listTime = 10 * time.Second

// distribution is an embedded Flux version, as listed by flux version --embedded.
type distribution struct {
	Version     string            `json:"version"`
	Controllers map[string]string `json:"controllers"`
}

// name returns the version without a leading "v".
func (d distribution) name() string { return strings.TrimPrefix(d.Version, "v") }

// flux is the path of the program that installs Flux: next to this program, or on PATH.
type flux struct{ path string }

func findFlux(binary string) (flux, error) {
	for _, path := range []string{filepath.Join(filepath.Dir(binary), "flux"), "flux"} {
		if found, err := exec.LookPath(path); err == nil {
			return flux{found}, nil
		}
	}
	return flux{}, errors.New("flux not found in the directory of flux-sandbox or on PATH: build it with make build, or run up without --flux")
}

// embedded lists the versions of Flux that can be installed without a download.
func (f flux) embedded(ctx context.Context) ([]distribution, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, f.path, "version", "--embedded", "-o", "json").Output()
	var all []distribution
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Flux versions in %s: %w", f.path, err)
	}
	return all, nil
}

// distribution returns the embedded version for a name such as 2.10.0, v2.10.0 or 2.10.
func (f flux) distribution(ctx context.Context, version string) (distribution, error) {
	all, err := f.embedded(ctx)
	if err != nil {
		return distribution{}, err
	}
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.name()
		asked := strings.TrimPrefix(version, "v")
		if asked == names[i] || asked == names[i][:strings.LastIndexByte(names[i], '.')] {
			return d, nil
		}
	}
	return distribution{}, fmt.Errorf("unknown Flux version %q: must be one of %s", version, strings.Join(names, ", "))
}

// install installs a version with all controllers, and reports controllers that run at another version.
func (f flux) install(ctx context.Context, d distribution, folder state.Folder, timeout time.Duration, progress io.Writer) error {
	cmd := exec.CommandContext(ctx, f.path, "install", "--version="+d.Version, "--components="+strings.Join(controller.Names(), ","),
		"--kubeconfig="+folder.Kubeconfig(), "--timeout="+timeout.String())
	cmd.Env = append(os.Environ(), "KUBECONFIG="+folder.Kubeconfig())
	cmd.Stdout, cmd.Stderr = progress, progress
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("installing Flux %s (the sandbox keeps running): %w", d.name(), err)
	}
	return reportVersions(d, folder, progress)
}

// reportVersions reports the controllers that run at another version than in the distribution, because the
// module proxy does not serve that version.
func reportVersions(d distribution, folder state.Folder, progress io.Writer) error {
	config, err := folder.LoadConfig()
	if err != nil {
		return err
	}
	var others []string
	for _, name := range config.Controllers {
		version, err := controller.Version(config.ControllerDir, name)
		if err != nil {
			return err
		}
		if version != d.Controllers[name] {
			others = append(others, fmt.Sprintf("%s %s instead of %s", name, version, d.Controllers[name]))
		}
	}
	if len(others) == 0 {
		return nil
	}
	_, err = fmt.Fprintf(progress, "⚠️ some controllers run at another version than in Flux %s: %s\n", d.name(), strings.Join(others, ", "))
	return err
}

// completeVersions returns the embedded Flux versions for shell completion.
func completeVersions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	binary, err := executable()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f, err := findFlux(binary)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := f.embedded(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, d := range all {
		names = append(names, d.name())
	}
	return slices.Clip(names), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
