package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/lifecycle"
	"github.com/fluxkit/flux/sandbox/internal/state"
	"github.com/fluxkit/flux/sandbox/internal/supervisor"
)

func newStatusCommand(folder func() (state.Folder, error)) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the status of the sandbox",
		Long: `List the sandbox components and the controllers that run as processes, with
process IDs, ports and resident memory. The exit code is 1 if the sandbox is not
running or a component has exited. The end of the component's log is printed.`,
		Example: `  # List all components and controllers
  flux-sandbox status

  # Print the status as JSON for a script
  flux-sandbox status -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			if output != "" && output != "json" {
				return fmt.Errorf("unknown output format %q: must be json", output)
			}
			report, err := lifecycle.Inspect(f)
			if err != nil {
				return err
			}
			if output == "json" {
				return statusJSON(cmd.OutOrStdout(), report)
			}
			return statusTable(cmd, f, report)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

func statusJSON(w io.Writer, report lifecycle.Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	if !report.Ready {
		return silent{errors.New("not ready")}
	}
	return nil
}

func statusTable(cmd *cobra.Command, f state.Folder, report lifecycle.Report) error {
	if !report.Up {
		return fmt.Errorf("the sandbox in %s is not running: start it with flux-sandbox up", f)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
	var total int64
	_, err := fmt.Fprintln(w, "NAME\tSTATE\tPID\tMEMORY\tPORTS")
	for _, p := range report.Processes {
		total += p.Memory
		_, werr := fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", p.Name, p.Phase, p.PID, mebibytes(p.Memory), formatPorts(p.Ports))
		err = errors.Join(err, werr)
	}
	_, werr := fmt.Fprintf(w, "total\t\t\t%s\t\n", mebibytes(total))
	if err := errors.Join(err, werr, w.Flush()); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	if report.Ready {
		return nil
	}
	return unhealthy(f, report)
}

func unhealthy(f state.Folder, report lifecycle.Report) error {
	var lines []string
	for _, p := range report.Processes {
		if p.Phase == state.Failed && p.Message != "" {
			tail := supervisor.Tail(f.Log(p.Name), 10)
			if tail == "" {
				tail = "  (no output)"
			}
			lines = append(lines, fmt.Sprintf("%s %s; the end of its log:\n%s", p.Name, p.Message, tail))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("the sandbox is %s", report.Phase))
	}
	return errors.New(strings.Join(append(lines, "run flux-sandbox up to recover"), "\n"))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

func formatPorts(ports map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		list = append(list, fmt.Sprintf("%s:%d", name, ports[name]))
	}
	return strings.Join(list, ",")
}
