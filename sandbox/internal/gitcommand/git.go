// Package gitcommand implements flux-sandbox git: repositories, credentials, keys and addresses of the Git server.
package gitcommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/gitserver"
)

// command contains the state shared by the subcommands. They work on the server's directory, so most do not require a
// running sandbox.
type command struct {
	dir func() string // the state directory of the sandbox, available after the flags are parsed
}

// New returns the git command. Subcommands call dir to get the state directory of the sandbox.
func New(dir func() string) *cobra.Command {
	g := command{dir: dir}
	cmd := &cobra.Command{
		Use:   "git",
		Short: "Manage the sandbox's Git server",
		Long: `Manage the repositories of the sandbox's Git server, its credentials and its
protected branches. The server listens for HTTP, HTTPS and SSH on this machine
only. It requires no credentials until some are configured, and then for all
three protocols. Changes take effect immediately.`,
		Example: `  # Create a repository and clone it
  flux-sandbox git create demo
  git clone "$(flux-sandbox git url demo)"`,
	}
	cmd.AddCommand(
		g.create(), g.list(), g.credentials(), g.keys(), g.protect(), g.unprotect(), g.url(), g.knownHosts(), g.ca(),
	)
	return cmd
}

// root returns an absolute path, because the paths printed from it are used in other directories.
func (g command) root() string {
	root := filepath.Join(g.dir(), "git")
	if absolute, err := filepath.Abs(root); err == nil {
		return absolute
	}
	return root
}

func (g command) repositories() (gitserver.Repositories, error) { return gitserver.Open(g.root()) }

// running returns the addresses of the running server.
func (g command) running() (gitserver.Addresses, error) {
	addresses, err := gitserver.Running(g.root())
	if errors.Is(err, gitserver.ErrNotRunning) {
		return addresses, fmt.Errorf("%w in %s and has no address: start it with flux-sandbox up", err, g.dir())
	}
	return addresses, err
}

func withHint(err error) error {
	if errors.Is(err, gitserver.ErrNotFound) {
		return fmt.Errorf("%w: see flux-sandbox git list, or create it with flux-sandbox git create", err)
	}
	return err
}

func (g command) create() *cobra.Command {
	var branch string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an empty repository",
		Long: `Create an empty repository with the default branch main or --branch. An existing
repository is kept, so that the command can be repeated.`,
		Example: `  # Create a repository
  flux-sandbox git create demo

  # Create a repository in an organization, with another default branch
  flux-sandbox git create acme/fleet --branch trunk`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repositories, err := g.repositories()
			if err != nil {
				return err
			}
			asked := branch
			if !cmd.Flags().Changed("branch") {
				asked = "" // keep the branch of an existing repository
			}
			created, err := repositories.Create(cmd.Context(), args[0], asked)
			if err != nil {
				return err
			}
			outcome := "already exists"
			if created {
				outcome = "created"
			}
			say(cmd, "repository %s %s", strings.TrimSuffix(args[0], ".git"), outcome)
			return nil
		},
	}
	cmd.Flags().StringVar(&branch, "branch", "main", "default branch of the new repository")
	return cmd
}

func (g command) list() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the repositories",
		Long:  "Print each repository with its default branch, whether it is empty, and its protected branches.",
		Example: `  # List all repositories
  flux-sandbox git list

  # Print the list as JSON
  flux-sandbox git list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			repositories, err := g.repositories()
			if err != nil {
				return err
			}
			list, err := repositories.List(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(cmd, list)
			}
			rows := [][]string{{"NAME", "BRANCH", "EMPTY", "PROTECTED"}}
			for _, r := range list {
				rows = append(rows, []string{r.Name, r.Branch, title(r.Empty), strings.Join(r.ProtectedBranches, ",")})
			}
			return printTable(cmd, rows)
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func (g command) protect() *cobra.Command {
	return &cobra.Command{
		Use:   "protect NAME BRANCH...",
		Short: "Protect branches from pushes",
		Long: `Reject pushes to branches of a repository, like Git hosts; other branches in the
same push are accepted. The branch need not exist; * in a name matches any text.`,
		Example: `  # Protect main and all release branches
  flux-sandbox git protect demo main 'release/*'`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			repositories, err := g.repositories()
			if err != nil {
				return err
			}
			changed, err := repositories.Protect(cmd.Context(), args[0], args[1:]...)
			return reportBranches(cmd, args, changed, err, "is now protected", "was already protected")
		},
	}
}

func (g command) unprotect() *cobra.Command {
	return &cobra.Command{
		Use:   "unprotect NAME BRANCH...",
		Short: "Allow pushes to branches again",
		Long:  `Remove the protection of branches. Patterns must be the same as in "protect".`,
		Example: `  # Allow pushes to main again
  flux-sandbox git unprotect demo main`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			repositories, err := g.repositories()
			if err != nil {
				return err
			}
			changed, err := repositories.Unprotect(cmd.Context(), args[0], args[1:]...)
			return reportBranches(cmd, args, changed, err, "accepts pushes again", "was not protected")
		},
	}
}

// reportBranches prints whether each branch in NAME BRANCH... has changed.
func reportBranches(cmd *cobra.Command, args, changed []string, err error, did, nothing string) error {
	if err != nil {
		return withHint(err)
	}
	for _, branch := range args[1:] {
		outcome := nothing
		if slices.Contains(changed, branch) {
			outcome = did
		}
		say(cmd, "branch %s of %s %s", branch, args[0], outcome)
	}
	return nil
}

func (g command) url() *cobra.Command {
	var overSSH, overHTTPS bool
	cmd := &cobra.Command{
		Use:   "url NAME",
		Short: "Print the URL of a repository",
		Long:  "Print the clone URL of a repository of the running sandbox, for HTTP unless a flag selects another protocol.",
		Example: `  # Clone over HTTP
  git clone "$(flux-sandbox git url demo)"

  # Clone over HTTPS with a verified certificate
  GIT_SSL_CAINFO="$(flux-sandbox git ca)" git clone "$(flux-sandbox git url demo --https)"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repositories, err := g.repositories()
			if err != nil {
				return err
			}
			name, _, err := repositories.Find(args[0])
			if err != nil {
				return withHint(err)
			}
			addresses, err := g.running()
			if err != nil {
				return err
			}
			scheme := "http"
			switch {
			case overSSH:
				scheme = "ssh"
			case overHTTPS:
				scheme = "https"
			}
			url := addresses.URL(scheme, name)
			if url == "" {
				return fmt.Errorf("the git server does not serve %s", scheme)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), url)
			return err
		},
	}
	cmd.Flags().BoolVar(&overSSH, "ssh", false, "print the SSH URL")
	cmd.Flags().BoolVar(&overHTTPS, "https", false, "print the HTTPS URL")
	cmd.MarkFlagsMutuallyExclusive("ssh", "https")
	return cmd
}

func (g command) knownHosts() *cobra.Command {
	return &cobra.Command{
		Use:   "known-hosts",
		Short: "Print the known_hosts line of the server",
		Long:  "Print the SSH host key of the running server in the known_hosts format.",
		Example: `  # Clone over SSH with a verified host key
  flux-sandbox git known-hosts > known_hosts
  GIT_SSH_COMMAND="ssh -o UserKnownHostsFile=known_hosts" git clone "$(flux-sandbox git url demo --ssh)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			addresses, err := g.running()
			if err != nil {
				return err
			}
			if addresses.KnownHosts == "" {
				return errors.New("the git server does not serve ssh")
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), addresses.KnownHosts)
			return err
		},
	}
}

func (g command) ca() *cobra.Command {
	var content bool
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Print the path of the server's CA certificate",
		Long: `Print the path of the CA certificate that verifies the server over HTTPS, and
create it if the sandbox was never started. The CA is constrained to loopback
names.`,
		Example: `  # Clone over HTTPS with a verified certificate
  GIT_SSL_CAINFO="$(flux-sandbox git ca)" git clone "$(flux-sandbox git url demo --https)"

  # Print the certificate itself
  flux-sandbox git ca --pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := gitserver.EnsureCA(g.root()); err != nil {
				return err
			}
			answer := gitserver.CAFile(g.root()) + "\n"
			if content {
				data, err := os.ReadFile(gitserver.CAFile(g.root()))
				if err != nil {
					return fmt.Errorf("reading the git server's CA: %w", err)
				}
				answer = string(data)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), answer)
			return err
		},
	}
	cmd.Flags().BoolVar(&content, "pem", false, "print the certificate instead of its path")
	return cmd
}

// say prints a message to stderr.
func say(cmd *cobra.Command, format string, args ...any) {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "✔ "+format+"\n", args...)
}

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "output format: json (default: table)")
}

func checkOutput(output string) error {
	if output != "" && output != "json" {
		return fmt.Errorf("unknown output format %q: must be json", output)
	}
	return nil
}

func printJSON(cmd *cobra.Command, value any) error {
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func printTable(cmd *cobra.Command, rows [][]string) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(row, "\t")) // Flush returns the error
	}
	return table.Flush()
}

func title(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
