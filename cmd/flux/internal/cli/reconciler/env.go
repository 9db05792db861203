package reconciler

import (
	"context"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Env has the cluster, the clock and the terminal of a Reconciler.
type Env struct {
	Client *kube.Client
	UI     *ui.Terminal
	Now    func() time.Time
	// Timeout is the time limit that messages name.
	Timeout time.Duration
	// Report prints an error as soon as it occurs, and Explain the root causes
	// of all failures in the end.
	Report  func(error)
	Explain func(context.Context, []*report.UnreadyError)
	// Share shares the watches of lists that were read before, or is nil.
	Share func(*reconcile.Watches)
}

// NewEnv returns the Env of a command.
func NewEnv(a *app.App, client *kube.Client, share func(*reconcile.Watches)) Env {
	return Env{
		Client: client, UI: a.UI, Now: a.Now, Timeout: a.Global.Timeout, Report: a.Report, Share: share,
		Explain: func(ctx context.Context, failed []*report.UnreadyError) {
			report.PrintRootCauses(ctx, a, report.Doctor(a, client), failed)
		},
	}
}
