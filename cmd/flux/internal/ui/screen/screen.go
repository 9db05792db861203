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
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/pkg/live"
)

const (
	// evaluationPause is the minimum time between evaluations of the cluster. After a slow evaluation it is
	// longer, so that evaluations use at most a twentieth of a CPU. The cluster is also evaluated without
	// changes, because states depend on the time.
	evaluationPause, evaluationEvery = 200 * time.Millisecond, 10 * time.Second
	evaluationShare                  = 20
)

// snapshotMsg is a new state of the cluster.
type snapshotMsg live.Snapshot

// tickMsg updates ages.
type tickMsg time.Time

// Run runs the dashboard until the user closes it.
func Run(a *app.App, cmd *cobra.Command, o overview.Options, screen io.Writer) error {
	flux, err := helper.Find("flux")
	if err != nil {
		return fmt.Errorf("the dashboard requires flux: %w", err)
	}
	cluster, err := overview.Open(a, cmd)
	if err != nil {
		return err
	}
	name := a.Global.Kube.Cluster()
	guard, err := config.GuardrailOf(a.Env, name)
	if err != nil {
		return err
	}
	if o.ReadOnly {
		guard = config.ReadOnly
	}
	own := cmd.LocalNonPersistentFlags()
	r := &child.Runner{Program: flux, Env: a.Environ(), Global: overview.Flags(cmd.Flags(), func(f *pflag.Flag) bool {
		return own.Lookup(f.Name) != nil || f.Name == "namespace" || f.Name == "context"
	})}
	if context := a.Global.Kube.Context(); context != "" { // the current context of the kubeconfig may change meanwhile
		r.Global = append(r.Global, "--context="+context)
	}
	if ui.Colors(screen, a.Env) {
		r.Env = append(r.Env, "CLICOLOR_FORCE=1")
	}
	return newModel(a, name, guard, r).show(cmd.Context(), screen, func(ctx context.Context) {
		cluster.Run(ctx, r.Go)
		r.Go(func() { evaluate(ctx, cluster, r.Send) })
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

// evaluate sends the state of the cluster after changes.
func evaluate(ctx context.Context, c *live.Cluster, send func(tea.Msg)) {
	again := time.NewTicker(evaluationEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Changed():
		case <-again.C:
		}
		began := c.Now()
		s := c.Snapshot()
		took := c.Now().Sub(began)
		send(snapshotMsg(s))
		_ = web.Sleep(ctx, max(evaluationPause, evaluationShare*took)) // ends with ctx
	}
}
