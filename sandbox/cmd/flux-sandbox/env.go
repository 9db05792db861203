package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/access"
	"github.com/fluxkit/flux/sandbox/internal/gitserver"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func newEnvCommand(folder func() (state.Folder, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print shell commands that point kubectl, flux and git at the sandbox",
		Long: `Print export commands for a shell to evaluate. They set KUBECONFIG, put the
directory with kubectl and flux first on PATH, and set the addresses of the
sandbox's Git server and OCI registry.`,
		Example: `  # Use the sandbox in this shell
  eval "$(flux-sandbox env)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			if !f.Exists() {
				return fmt.Errorf("no sandbox in %s: start one with flux-sandbox up", f)
			}
			config, err := f.LoadConfig()
			if err != nil {
				return err
			}
			binary, err := executable()
			if err != nil {
				return err
			}
			lines, err := environment(f, config, filepath.Dir(binary))
			for _, line := range lines {
				_, werr := fmt.Fprintln(cmd.OutOrStdout(), line)
				err = errors.Join(err, werr)
			}
			return err
		},
	}
}

// environment returns the export commands. PATH keeps the value of the shell.
func environment(f state.Folder, config state.Config, bin string) ([]string, error) {
	values := [][2]string{
		{"KUBECONFIG", f.Kubeconfig()},
		{"FLUX_SANDBOX_DIR", string(f)},
		{"FLUX_SANDBOX_GIT_URL", "http://" + config.Addr("git-http")},
		{"FLUX_SANDBOX_GIT_HTTPS_URL", "https://" + config.Addr("git-https")},
		{"FLUX_SANDBOX_GIT_SSH_URL", "ssh://git@" + config.Addr("git-ssh")},
		{"FLUX_SANDBOX_GIT_CA", gitserver.CAFile(f.Path("git"))},
		{"FLUX_SANDBOX_REGISTRY", config.Addr("registry")},
	}
	if config.Untrusted {
		token, err := access.ServerToken(f)
		if err != nil {
			return nil, err
		}
		values = append(values, [][2]string{
			{"FLUX_SANDBOX_USER", access.ServerUser}, {"FLUX_SANDBOX_PASSWORD", token},
			{"FLUX_SANDBOX_GUARD_KUBECONFIG", f.PartKubeconfig(access.Guard)},
		}...)
	}
	lines := []string{"export PATH=" + quote(bin) + `:"$PATH"`}
	for _, v := range values {
		lines = append(lines, "export "+v[0]+"="+quote(v[1]))
	}
	return lines, nil
}

// quote returns s quoted as one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
