package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/live"
)

// overview is the JSON and YAML output.
type overview struct {
	// Healthy reports whether the exit code is 0.
	Healthy     bool               `json:"healthy"`
	Cluster     string             `json:"cluster"`
	Flux        string             `json:"flux,omitempty"`
	Controllers count              `json:"controllers"`
	Counts      map[live.State]int `json:"counts"`
	Resources   []resource         `json:"resources"`
	Unknown     []string           `json:"unknown,omitempty"`
}

type count struct {
	Ready int `json:"ready"`
	Total int `json:"total"`
}

type resource struct {
	controllers.ID
	State     live.State `json:"state"`
	Code      string     `json:"code,omitempty"`
	Message   string     `json:"message"`
	Suspended bool       `json:"suspended,omitempty"`
	Revision  string     `json:"revision,omitempty"`
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	// RootCause is the object that the resource waits for.
	RootCause *controllers.ID `json:"rootCause,omitempty"`
	Remedies  []string        `json:"remedies,omitempty"`
}

// once prints the overview.
func once(a *app.App, cmd *cobra.Command, o Options) error {
	sites, err := Open(a, cmd)
	if err != nil {
		return err
	}
	cluster := sites[0] // once runs for each cluster
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	line := a.UI.Progress(a.Now, "reading the Flux resources")
	err = cluster.Read(ctx)
	line.Done()
	if err != nil {
		return err
	}
	s := cluster.Snapshot()
	unknown := s.Unknown()
	if s.Controllers.Unread != "" && (len(cluster.Namespaces) == 0 || slices.Contains(cluster.Namespaces, cluster.Diagnoser.Home)) {
		unknown = append(unknown, s.Controllers.Unread)
	}
	var failed error
	switch {
	case s.Counts[live.Failed]+s.Counts[live.Waiting] > 0:
		failed = &clierr.ExitCodeError{Code: clierr.ExitFailed}
	case len(unknown) > 0:
		failed = &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	if o.Format != "" {
		err = a.Encode(o.Format, encoded(a, s, unknown, failed == nil))
	} else {
		err = printed(a, s, unknown)
	}
	return cmp.Or(err, failed)
}

func encoded(a *app.App, s live.Snapshot, unknown []string, healthy bool) overview {
	o := overview{
		Healthy: healthy, Cluster: a.Global.Kube.Cluster(), Flux: s.Controllers.Version, Controllers: count{s.Controllers.Ready, s.Controllers.Total},
		Counts: map[live.State]int{}, Resources: []resource{}, Unknown: unknown,
	}
	for _, state := range live.States() {
		o.Counts[state] = s.Counts[state]
	}
	for _, row := range s.Rows {
		r := resource{
			ID: row.ID, State: row.State, Code: row.Code, Message: redact.Text(row.Message), Suspended: row.Suspended, Revision: row.Revision,
			CreatedAt: report.TimeOrNil(row.Created),
		}
		if row.Root != row.ID && row.Root.Name != "" {
			r.RootCause = &row.Root
		}
		for _, fix := range row.Fixes {
			r.Remedies = append(r.Remedies, redact.Text(fix))
		}
		o.Resources = append(o.Resources, r)
	}
	return o
}

// printed prints the overview as text.
func printed(a *app.App, s live.Snapshot, unknown []string) error {
	if err := a.Printf("%s\n%s\n\n", Title(a.Global.Kube.Cluster(), s), Counts(s)); err != nil {
		return err
	}
	t := output.Table{Headers: []string{"STATE", "KIND", "NAMESPACE", "NAME", "AGE", "REVISION", "MESSAGE"}}
	for _, row := range s.Rows {
		t.Rows = append(t.Rows, []string{string(row.State), row.ID.Kind, row.ID.Namespace, row.ID.Name, Age(s, row), row.Revision, Message(row)})
	}
	if len(t.Rows) > 0 {
		if err := a.Table(t, app.TableStyle{}); err != nil {
			return err
		}
	}
	p := report.NewPage(a)
	if p.Section("Could not check", unknown); p.B.Len() > 0 {
		return a.Print("\n" + p.B.String())
	}
	return nil
}

// Title returns the line with the cluster or the number of clusters, the versions of Flux and the controllers.
func Title(cluster string, s live.Snapshot) string {
	parts := s.Parts
	if len(parts) == 0 {
		parts = []live.Snapshot{s}
	}
	ready, total := 0, 0
	var versions []string
	for _, part := range parts {
		if c := part.Controllers; c.Unread == "" {
			ready, total = ready+c.Ready, total+c.Total
			versions = append(versions, c.Version)
		}
	}
	if total == 0 {
		return cluster + " · controllers unknown"
	}
	slices.Sort(versions)
	versions = slices.DeleteFunc(slices.Compact(versions), func(v string) bool { return v == "" })
	return fmt.Sprintf("%s · Flux %s · %d of %d controllers ready", cluster, cmp.Or(strings.Join(versions, ", "), "of unknown version"), ready, total)
}

// Counts returns the line with the number of objects in each state.
func Counts(s live.Snapshot) string {
	text := output.Amount(len(s.Rows), "resource")
	var parts []string
	for _, state := range live.States() {
		if n := s.Counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(string(state))))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// Age returns the age of an object in the format of kubectl.
func Age(s live.Snapshot, row live.Row) string {
	if row.Created.IsZero() {
		return ""
	}
	return duration.HumanDuration(s.At.Sub(row.Created))
}

// Message returns the message of a row: the blocking object, or its own message.
func Message(row live.Row) string {
	if row.State == live.Waiting {
		return "waits for " + row.Root.String()
	}
	return redact.Text(row.Message)
}
