// Package completion implements the completion command.
package completion

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
)

// shells are the supported shells with their installation examples.
var shells = []struct {
	name, example string
	write         func(root *cobra.Command, w io.Writer) error
}{
	{"bash", `  # Load completion in the current session
  . <(flux completion bash)

  # Load completion in every session: add that line to ~/.bashrc`,
		writeBash},
	{"fish", `  # Load completion in the current session
  flux completion fish | source

  # Load completion in every session
  flux completion fish > ~/.config/fish/completions/flux.fish`,
		func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
	{"powershell", `  # Load completion in the current session
  flux completion powershell | Out-String | Invoke-Expression

  # Load completion in every session: add that line to the file in $PROFILE`,
		func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) }},
	{"zsh", `  # Load completion in the current session, after compinit
  . <(flux completion zsh)

  # Load completion in every session
  flux completion zsh > "${fpath[1]}/_flux"`,
		func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) }},
}

// bashWords splits the command line if the bash-completion package, which cobra's script requires,
// is not loaded. Unlike COMP_WORDS, the words contain = and :.
const bashWords = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __flux_init_completion()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        COMPREPLY=()
        IFS=$' \t' read -r -a words <<<"${line}"
        [[ ${line} == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`

func writeBash(root *cobra.Command, w io.Writer) error {
	if err := root.GenBashCompletionV2(w, true); err != nil {
		return err
	}
	_, err := io.WriteString(w, bashWords)
	return err
}

// NewCommand returns the completion command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := command.Group("completion", "Generate shell completion scripts")
	for _, shell := range shells {
		cmd.AddCommand(&cobra.Command{
			Use:                   shell.name,
			Short:                 "Print the completion script for " + shell.name,
			Example:               shell.example,
			Args:                  cobra.NoArgs,
			DisableFlagsInUseLine: true,
			ValidArgsFunction:     cobra.NoFileCompletions,
			RunE:                  func(cmd *cobra.Command, _ []string) error { return shell.write(cmd.Root(), a.Output(shell.name)) },
		})
	}
	return cmd
}
