// Package sites defines the clusters of the dashboard.
package sites

import (
	"context"
	"slices"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/pkg/live"
)

const (
	// evaluationPause is the minimum time between evaluations of a cluster. After a slow evaluation it is
	// longer, so that evaluations use at most a twentieth of a CPU. The cluster is also evaluated without
	// changes, because states depend on the time.
	evaluationPause, evaluationEvery = 200 * time.Millisecond, 10 * time.Second
	evaluationShare                  = 20
	// widthMax is the maximum width of the names of clusters in the list.
	widthMax = 20
)

// Site is a cluster of the dashboard.
type Site struct {
	// Name is the name of the cluster for people, and Context its kubeconfig context, or "".
	Name, Context string
	Guard         config.Guardrail
	// Cluster is nil in tests.
	Cluster *live.Cluster
}

// List holds the clusters of the dashboard. It is not empty.
type List []Site

// Open connects to the clusters of the selected contexts.
func Open(a *app.App, cmd *cobra.Command, readOnly bool) (List, error) {
	opened, err := overview.Open(a, cmd)
	if err != nil {
		return nil, err
	}
	l := make(List, len(opened))
	for i, c := range opened {
		s := Site{Name: c.Kube.Cluster(), Context: c.Kube.Context(), Cluster: c.Cluster}
		if s.Guard, err = config.GuardrailOf(a.Env, s.Name); err != nil {
			return nil, err
		}
		if readOnly {
			s.Guard = config.ReadOnly
		}
		l[i] = s
	}
	return l, nil
}

// Of returns the site of the rows of a cluster.
func (l List) Of(cluster string) Site {
	i := slices.IndexFunc(l, func(s Site) bool { return s.Cluster != nil && s.Cluster.Name == cluster })
	return l[max(0, i)]
}

// Title returns the name of the cluster, or the number of clusters.
func (l List) Title() string {
	if len(l) > 1 {
		return output.Amount(len(l), "cluster")
	}
	return printable.Line(l[0].Name)
}

// ReadOnly reports whether no cluster can be changed.
func (l List) ReadOnly() bool {
	return !slices.ContainsFunc(l, func(s Site) bool { return s.Guard != config.ReadOnly })
}

// Width returns the width of the names of the clusters in the list, 0 for one cluster.
func (l List) Width() int {
	if len(l) == 1 {
		return 0
	}
	width := len("CLUSTER")
	for _, s := range l {
		width = max(width, ansi.StringWidth(s.Name))
	}
	return min(width, widthMax)
}

// Args returns the arguments of a command for a cluster. They contain the context, because the current context of the
// kubeconfig may change meanwhile.
func (l List) Args(cluster string, args []string) []string {
	if context := l.Of(cluster).Context; context != "" {
		return append(args, "--context="+context)
	}
	return args
}

// Run watches the clusters until ctx is done, in goroutines that it starts with start. It sends the state of the site at an index after changes.
func (l List) Run(ctx context.Context, start func(func()), send func(int, live.Snapshot)) {
	for i, s := range l {
		s.Cluster.Run(ctx, start)
		start(func() { evaluate(ctx, s.Cluster, func(state live.Snapshot) { send(i, state) }) })
	}
}

// evaluate sends the state of a cluster after changes.
func evaluate(ctx context.Context, c *live.Cluster, send func(live.Snapshot)) {
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
		pause := pauseAfter(s.Loading(), c.Now().Sub(began))
		send(s)
		_ = web.Sleep(ctx, pause) // ends with ctx
	}
}

// pauseAfter returns the time until the next evaluation. The evaluation of a part of the objects does not delay the first full list.
func pauseAfter(loading bool, took time.Duration) time.Duration {
	if loading {
		return evaluationPause
	}
	return max(evaluationPause, evaluationShare*took)
}
