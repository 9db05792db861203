package part

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// runKwok simulates all pods that do not run as processes: its stages define their life
// cycle, and it renews the lease of the node.
func runKwok(ctx context.Context, folder state.Folder, config state.Config) error {
	stages := folder.Path("kwok", "stages.yaml")
	text, err := config.Selection().Stages()
	if err != nil {
		return err
	}
	if err := state.WriteFile(stages, text); err != nil {
		return err
	}
	// kwok reads its configuration file from the arguments of the process before
	// it creates a command.
	os.Args = []string{
		"kwok", "--config=" + stages, "--kubeconfig=" + folder.PartKubeconfig("kwok"),
		"--manage-all-nodes=true", "--node-lease-duration-seconds=40",
		"--server-address=" + config.Addr("kwok"), "--cidr=10.244.0.0/16",
		"--node-ip=127.0.0.1", fmt.Sprintf("--node-port=%d", config.Ports["kubelet"]),
	}
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err = kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading kwok's stages: %w", err)
	}
	command := cmd.NewCommand(ctx)
	// The Kubernetes libraries have registered a version flag of another type.
	command.Version = ""
	command.PersistentFlags().AddFlagSet(flags)
	command.SetArgs(os.Args[1:])
	if err := command.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("running kwok: %w", err)
	}
	return nil
}
