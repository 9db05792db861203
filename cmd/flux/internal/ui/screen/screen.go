// Package screen implements the terminal dashboard. Its pages and actions run flux commands.
package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/child"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/sites"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/live"
)

// snapshotMsg is a new state of the cluster of a site.
type snapshotMsg struct {
	site  int
	state live.Snapshot
}

// tickMsg updates ages.
type tickMsg time.Time

// Run runs the dashboard until the user closes it.
func Run(a *app.App, cmd *cobra.Command, o overview.Options, screen io.Writer) error {
	flux, err := helper.Find("flux")
	if err != nil {
		return fmt.Errorf("the dashboard requires flux: %w", err)
	}
	all, err := sites.Open(a, cmd, o.ReadOnly)
	if err != nil {
		return err
	}
	own := cmd.LocalNonPersistentFlags()
	r := &child.Runner{Program: flux, Env: a.Environ(), Global: overview.Flags(cmd.Flags(), func(f *pflag.Flag) bool {
		return own.Lookup(f.Name) != nil || f.Name == "namespace" || f.Name == "context"
	})}
	if ui.Colors(screen, a.Env) {
		r.Env = append(r.Env, "CLICOLOR_FORCE=1")
	}
	m := newModel(a, all, r)
	for i, site := range all {
		m.parts[i] = site.Cluster.Snapshot()
	}
	return m.show(cmd.Context(), screen, func(ctx context.Context) {
		all.Run(ctx, r.Go, func(site int, state live.Snapshot) { r.Send(snapshotMsg{site, state}) })
	})
}

// crashHint is the remedy for a panic.
const crashHint = "report the crash with this stack trace; flux ui --once prints the overview"

// show runs the dashboard until the user closes it, ctx ends, or a goroutine panics. start starts the goroutines of
// the dashboard.
func (m *model) show(ctx context.Context, screen io.Writer, start func(context.Context)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.ctx = ctx
	m.run.Crashed = func(problem any, stack []byte) {
		_, _ = m.app.Err.Write(append(stack, '\n'))                                                       // a buffer
		cancel(hint.Errorf(crashHint, "the dashboard has crashed: %s", redact.Text(fmt.Sprint(problem)))) // which restores the terminal
	}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(screen), tea.WithEnvironment(m.app.Environ()), tea.WithoutSignalHandler())
	m.run.Send = p.Send
	start(ctx)
	_, err := p.Run()
	cause := context.Cause(ctx)
	cancel(nil)
	m.run.Wait()
	switch {
	case cause != nil:
		return cause
	case errors.Is(err, tea.ErrProgramPanic): // printed by bubbletea
		return hint.Errorf(crashHint, "the dashboard has crashed")
	}
	return err
}
