package command

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/terminal/fit"
)

// Exits maps the exit codes of a command and its subcommands to their meanings. The help of the command,
// "flux help exit-codes" and docs/exit-codes.md are generated from it. A command that declares
// clierr.ExitUndetermined exits with it for errors, because it uses exit code 1 for a result.
type Exits map[int]string

// OtherExit is the key for the exit codes of another program.
const OtherExit = -1

// exitAnnotation is the prefix of the annotations with exit codes.
const exitAnnotation = "exit code "

// Annotations returns the annotations for a command.
func (e Exits) Annotations() map[string]string {
	annotations := map[string]string{}
	for code, meaning := range e {
		annotations[exitAnnotation+strconv.Itoa(code)] = meaning
	}
	return annotations
}

// ownExits returns the exit codes that a command itself declares.
func ownExits(cmd *cobra.Command) Exits {
	own := Exits{}
	for name, meaning := range cmd.Annotations {
		if number, ok := strings.CutPrefix(name, exitAnnotation); ok {
			code, _ := strconv.Atoi(number) // written by Annotations
			own[code] = meaning
		}
	}
	return own
}

// declaredExits returns the exit codes that a command or its nearest parent below the root declares.
func declaredExits(cmd *cobra.Command) Exits {
	for ; cmd != nil && cmd.HasParent(); cmd = cmd.Parent() {
		if own := ownExits(cmd); len(own) > 0 {
			return own
		}
	}
	return nil
}

// ExitsOf returns the exit codes of a command, including the codes that all commands share.
func ExitsOf(cmd *cobra.Command) Exits {
	all := ownExits(cmd.Root())
	maps.Copy(all, declaredExits(cmd))
	return all
}

// ErrorExit returns the exit code for an error of a command.
func ErrorExit(cmd *cobra.Command) int {
	if cmd != nil && declaredExits(cmd)[clierr.ExitUndetermined] != "" {
		return clierr.ExitUndetermined
	}
	return clierr.ExitFailed
}

// exitHeading is the heading for exit codes in help and reference.
const exitHeading = "Exit codes"

// ExitHelp returns the help section on exit codes, or "" if the command has only the shared codes.
func ExitHelp(cmd *cobra.Command, width int) string {
	declared := declaredExits(cmd)
	if len(declared) == 0 {
		return ""
	}
	return exitHeading + ":\n" + declared.text("  ", width)
}

// ExitReference returns the section of ExitHelp as Markdown.
func ExitReference(cmd *cobra.Command) string {
	declared := declaredExits(cmd)
	if len(declared) == 0 {
		return ""
	}
	return "### " + exitHeading + "\n\n" + declared.table()
}

func (e Exits) codes() []int {
	codes := slices.Sorted(maps.Keys(e))
	if len(codes) > 0 && codes[0] == OtherExit {
		codes = append(codes[1:], OtherExit)
	}
	return codes
}

func exitName(code int) string {
	if code == OtherExit {
		return "other"
	}
	return strconv.Itoa(code)
}

// text returns a line for each code, with a hanging indent.
func (e Exits) text(indent string, width int) string {
	var b strings.Builder
	for _, code := range e.codes() {
		start := fmt.Sprintf("%s%-3s  ", indent, exitName(code))
		b.WriteString(start + fit.Fold(strings.Repeat(" ", len(start))+e[code], len(start), width)[len(start):] + "\n")
	}
	return b.String()
}

// table returns the codes as a table in Markdown.
func (e Exits) table() string {
	literal := regexp.MustCompile(`--[a-z-]+(=[a-z]+)?|'flux [a-z]+'`) // flags and commands
	var b strings.Builder
	b.WriteString("| code | meaning |\n| --- | --- |\n")
	for _, code := range e.codes() {
		meaning := literal.ReplaceAllStringFunc(e[code], func(s string) string { return "`" + strings.Trim(s, "'") + "`" })
		fmt.Fprintf(&b, "| %s | %s |\n", exitName(code), meaning)
	}
	return b.String()
}

// ExitDocument returns a document about the exit codes of all commands: text wrapped at width, or Markdown if width is 0.
func ExitDocument(root *cobra.Command, width int) string {
	general := ownExits(root)
	var commands []*cobra.Command
	var undetermined []string
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		own := ownExits(cmd)
		if cmd.HasParent() && len(own) > 0 {
			commands = append(commands, cmd)
		}
		if own[clierr.ExitUndetermined] != "" && cmd.Parent() == root {
			undetermined = append(undetermined, cmd.Name())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(root)
	last := len(undetermined) - 1
	general[clierr.ExitUndetermined] = "undetermined: only " + strings.Join(undetermined[:last], ", ") + " and " + undetermined[last] + ", which use exit code 1 for a result"
	var b strings.Builder
	if width == 0 {
		b.WriteString("# Exit codes\n\n" + general.table() + "\n" + exitRules + "\n")
		for _, cmd := range commands {
			b.WriteString("\n## " + cmd.CommandPath() + "\n\n" + ownExits(cmd).table())
		}
		return b.String()
	}
	b.WriteString("Exit codes of flux.\n\n" + general.text("  ", width) + "\n" + exitRules + "\n\nCommands with other exit codes:\n")
	for _, cmd := range commands {
		b.WriteString("\n  " + cmd.CommandPath() + "\n" + ownExits(cmd).text("    ", width))
	}
	return strings.TrimSpace(b.String())
}

// exitRules describes the exit codes of all commands.
const exitRules = `With several objects, a command processes all of them, reports each failure, and
fails at the end. A command that prints ✗ never exits 0.

A command without required arguments prints its usage on standard error and
fails. Commands also fail if Flux is not installed, if you have no permission to
read the objects, and for an unknown kind, condition or flag. A plugin, flux
NAME, exits with its own exit code.`
