package render

import (
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// ImageChange is an image of a container that is added, removed or changed.
type ImageChange struct {
	// Cluster is the directory of the cluster, if several were compared.
	Cluster string `json:"cluster,omitempty"`
	// Action is added, removed or changed.
	Action string                  `json:"action"`
	Object controllers.VersionedID `json:"object"`
	diff.Image
}

// imageChanges returns the images that the changes of all results add, remove and change. It does not
// include the images of unchanged objects.
func imageChanges(results []*diff.Result) []ImageChange {
	found := []ImageChange{}
	for r, c := range diff.Each(results) {
		if !c.Different() || c.Action == diff.Failed {
			continue
		}
		for _, image := range c.Images {
			action := "changed"
			switch {
			case image.Before == "":
				action = "added"
			case image.After == "":
				action = "removed"
			}
			found = append(found, ImageChange{r.Cluster, action, c.Object, image})
		}
	}
	return found
}

// Images returns the images that change, in one of ListFormats: as a table, or nothing if there are none.
func Images(format string, results []*diff.Result) (string, error) {
	if format == "json" {
		return encode(struct {
			Images []ImageChange `json:"images"`
		}{imageChanges(results)})
	}
	t := output.Table{Headers: []string{"ACTION", "OBJECT", "CONTAINER", "BEFORE", "AFTER"}}
	asked := slices.ContainsFunc(imageChanges(results), func(i ImageChange) bool { return i.Registry != nil })
	if asked {
		t.Headers = append(t.Headers, "REGISTRY")
	}
	several := len(clustersOf(results)) > 0
	if several {
		t.Headers = append(t.Headers, "CLUSTERS")
	}
	for _, section := range Sections(results) {
		for _, i := range imageChanges(section.Results) {
			row := []string{i.Action, i.Object.String(), i.Container, i.Before, i.After}
			if asked {
				row = append(row, checkCell(i.Registry))
			}
			if several {
				row = append(row, section.names())
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return "", nil
	}
	var b strings.Builder
	err := t.Write(&b, true)
	return b.String(), err
}

// imageProblem returns the ID of the rule and a sentence for an image that is missing or could not be
// verified, and nothing for others.
func imageProblem(i diff.Image) (rule, text string) {
	switch {
	case i.Registry == nil:
	case i.Registry.State == diff.ImageMissing:
		return noImage, "uses the image " + i.After + ": " + i.Registry.Reason
	case i.Registry.State == diff.ImageUnknown:
		return unknown, "uses the image " + i.After + ", which could not be verified: " + i.Registry.Reason
	}
	return "", ""
}

// imageProblems returns a sentence for each image of a change that is missing or could not be verified.
func imageProblems(c diff.Change) []string {
	var said []string
	for _, i := range c.Images {
		if _, text := imageProblem(i); text != "" {
			said = append(said, text)
		}
	}
	return said
}

// checkCell returns the result of an image check as a table cell.
func checkCell(c *diff.ImageCheck) string {
	switch {
	case c == nil:
		return ""
	case c.Reason != "":
		return printable.Line(string(c.State) + ": " + c.Reason)
	}
	return printable.Line(strings.Join(append([]string{string(c.State)}, c.Platforms...), " "))
}
