package part

import (
	"context"

	"github.com/fluxkit/flux/sandbox/internal/kubelet"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func runKubelet(ctx context.Context, folder state.Folder, config state.Config) error {
	return kubelet.Run(ctx, folder, config)
}
