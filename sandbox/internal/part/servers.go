package part

import (
	"context"
	"os"

	"github.com/fluxkit/flux/sandbox/internal/gitserver"
	"github.com/fluxkit/flux/sandbox/internal/registry"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func runGit(ctx context.Context, folder state.Folder, config state.Config) error {
	return gitserver.Run(ctx, gitserver.Config{
		Root: folder.Path("git"), Log: os.Stderr,
		HTTPAddr: config.Addr("git-http"), HTTPSAddr: config.Addr("git-https"), SSHAddr: config.Addr("git-ssh"),
	})
}

func runRegistry(ctx context.Context, folder state.Folder, config state.Config) error {
	return registry.Run(ctx, registry.Config{Root: folder.Path("registry"), Addr: config.Addr("registry"), Log: os.Stderr})
}
