package clusters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// mostOutput is the maximum output of a command on one cluster in bytes.
const mostOutput = 64 << 20

// capture keeps the output of a command on one cluster. It is a writer that wraps standard output, so that the command
// formats its output for the same terminal.
type capture struct {
	terminal io.Writer
	size     int
	parts    []part
}

// part is a text or a table.
type part struct {
	text  bytes.Buffer
	table *output.Table
	style app.TableStyle
}

// Unwrap returns the standard output of the process.
func (c *capture) Unwrap() io.Writer { return c.terminal }

// Write implements io.Writer.
func (c *capture) Write(text []byte) (int, error) {
	if c.size += len(text); c.size > mostOutput {
		return 0, budget.TooLarge("output", "the output for a cluster", mostOutput)
	}
	if len(c.parts) == 0 || c.parts[len(c.parts)-1].table != nil {
		c.parts = append(c.parts, part{})
	}
	return c.parts[len(c.parts)-1].text.Write(text)
}

func (c *capture) table(t output.Table, style app.TableStyle) error {
	for _, row := range t.Rows {
		for _, cell := range row {
			c.size += len(cell)
		}
	}
	if c.size > mostOutput {
		return budget.TooLarge("output", "the output for a cluster", mostOutput)
	}
	c.parts = append(c.parts, part{table: &t, style: style})
	return nil
}

// text returns the output if it has no tables.
func (c *capture) text() string {
	var b strings.Builder
	for i := range c.parts {
		b.Write(c.parts[i].text.Bytes())
	}
	return b.String()
}

// tables returns the tables, and whether the output consists of tables only.
func (c *capture) tables() ([]part, bool) {
	tables := slices.DeleteFunc(slices.Clone(c.parts), func(p part) bool { return p.table == nil })
	return tables, len(tables) > 0 && strings.TrimSpace(c.text()) == ""
}

// show prints the results: one document, one table, or a section for each cluster.
func show(a *app.App, several *SeveralError, results []result) error {
	if several.Format == "json" || several.Format == "yaml" {
		return showDocument(a, several.Format, results)
	}
	if tables := merged(results); tables != nil {
		for i, p := range tables {
			if i > 0 {
				if err := a.Print("\n"); err != nil {
					return err
				}
			}
			if err := a.Table(*p.table, p.style); err != nil {
				return err
			}
		}
		return nil
	}
	return showSections(a, results)
}

// merged returns the tables of all clusters with the column CLUSTER: one for each set of columns. It returns nil if the
// output of a cluster has other text.
func merged(results []result) []part {
	var all []part
	for _, r := range results {
		tables, ok := r.out.tables()
		if !ok && len(r.out.parts) > 0 {
			return nil
		}
		for _, p := range tables {
			headers := append([]string{"CLUSTER"}, p.table.Headers...)
			i := slices.IndexFunc(all, func(other part) bool { return slices.Equal(other.table.Headers, headers) })
			if i < 0 {
				i = len(all)
				all = append(all, part{table: &output.Table{Headers: headers}, style: p.style})
			}
			for _, row := range p.table.Rows {
				all[i].table.Rows = append(all[i].table.Rows, append([]string{r.context}, row...))
			}
		}
	}
	return all
}

// showSections prints the output of each cluster below its name.
func showSections(a *app.App, results []result) error {
	separator := ""
	for _, r := range results {
		if len(r.out.parts) == 0 {
			continue
		}
		if err := a.Print(separator + printable.Line(r.context) + ":\n"); err != nil {
			return err
		}
		separator = "\n"
		for i := range r.out.parts {
			p := &r.out.parts[i]
			err := error(nil)
			if p.table != nil {
				err = a.Table(*p.table, p.style)
			} else {
				err = a.Print(p.text.String())
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// document is the result of a command on several clusters.
type document struct {
	Clusters []entry `json:"clusters"`
}

// entry is the result of a command on one cluster.
type entry struct {
	Cluster  string `json:"cluster"`
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`
	// Result is the output of the command for one cluster; it is omitted if there is none.
	Result json.RawMessage `json:"result,omitempty"`
}

// message returns the error of a command, "" if the command has reported its errors itself or its exit code is a result.
func (r result) message() string {
	var code *clierr.ExitCodeError
	if r.unreachable != "" || r.err == nil || errors.Is(r.err, clierr.ErrReported) || errors.As(r.err, &code) {
		return r.unreachable
	}
	message, _ := clierr.Explain(r.err, nil)
	return message
}

func showDocument(a *app.App, format string, results []result) error {
	var d document
	for _, r := range results {
		e := entry{Cluster: r.context, ExitCode: r.exitCode()}
		e.Error = a.Secrets.Text(r.message())
		if text := []byte(r.out.text()); len(bytes.TrimSpace(text)) > 0 {
			content, err := yaml.YAMLToJSON(text)
			if format == "json" {
				content, err = text, nil
			}
			if err != nil || !json.Valid(content) {
				return fmt.Errorf("%s: the output is not a single %s document", r.context, strings.ToUpper(format))
			}
			e.Result = content
		}
		d.Clusters = append(d.Clusters, e)
	}
	return a.Encode(format, d)
}
