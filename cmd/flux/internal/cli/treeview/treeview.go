// Package treeview draws trees and graphs of objects in color.
package treeview

import (
	"fmt"
	"strings"

	"github.com/fatih/color"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/diagram"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// BoxStatus returns the status of an object in a diagram.
func BoxStatus(status tree.Status) diagram.Status {
	switch status {
	case tree.Ready:
		return diagram.Good
	case tree.Failed, tree.NotFound:
		return diagram.Bad
	case tree.InProgress, tree.Terminating:
		return diagram.Busy
	default:
		return diagram.Neutral
	}
}

// Mark returns the mark of a status and a space on a terminal, else "".
func Mark(a *app.App, status tree.Status) string {
	mark := status.Mark()
	if mark == "" || !ui.IsTerminal(a.Out) {
		return ""
	}
	return mark + " "
}

// Style returns the style of a tree: narrow, colored and with marks on a
// terminal, else separated by tabs.
func Style(a *app.App) tree.Style {
	style := tree.Style{Now: a.Now(), Separator: "\t"}
	if ui.IsTerminal(a.Out) {
		style.Separator, style.Width, style.Marks = "  ", ui.Columns(a.Out, a.Env), true
	}
	if ui.Colors(a.Out, a.Env) {
		style.Paint = paintStatus
	}
	return style
}

func paintStatus(status tree.Status, text string) string {
	hue := color.FgYellow
	switch status {
	case tree.Ready:
		hue = color.FgGreen
	case tree.Failed, tree.NotFound:
		hue = color.FgRed
	}
	c := color.New(hue)
	c.EnableColor()
	return c.Sprint(text)
}

// ReportGaps reports the resource types that could not be listed. Missing permissions are one
// warning, not an error.
func ReportGaps(a *app.App, gaps []tree.Gap) error {
	var failed error
	var forbidden []string
	for _, gap := range gaps {
		text := gap.Resource
		if len(gap.Namespaces) > 0 {
			text += " in " + strings.Join(gap.Namespaces, ", ")
		}
		if apierrors.IsForbidden(gap.Err) {
			forbidden = append(forbidden, text)
			continue
		}
		a.UI.Failure("listing %s: %s", text, gap.Err)
		failed = clierr.ErrReported
	}
	if len(forbidden) > 0 {
		a.UI.Warning("no permission to list, not included: %s", strings.Join(forbidden, "; "))
	}
	return failed
}

// MoreFailed returns the line for objects in the inventory of a resource that are not drawn.
func MoreFailed(k controllers.Kind, resource controllers.ID, more int) string {
	return fmt.Sprintf("and %d more: %s", more, hint.Command("flux tree "+k.Word+" %s -n %s --failed", resource.Name, resource.Namespace))
}
