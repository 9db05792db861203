package render

import (
	"encoding/json"
	"io"

	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/diff"
)

// ImageChange is an image of a container that is added, removed or changed.
type ImageChange struct {
	// Cluster is the folder of the cluster, if several were compared.
	Cluster string `json:"cluster,omitempty"`
	// Action is added, removed or changed.
	Action string   `json:"action"`
	Object diff.Ref `json:"object"`
	diff.Image
}

// imageChanges returns the images that the changes of all results add, remove and change. Images of
// objects that do not change are not known.
func imageChanges(results []*diff.Result) []ImageChange {
	found := []ImageChange{}
	for _, r := range results {
		for _, c := range r.Changes {
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
	}
	return found
}

// Images writes a table of the images that change, and nothing if there are none.
func Images(w io.Writer, results []*diff.Result) error {
	t := output.Table{Headers: []string{"ACTION", "OBJECT", "CONTAINER", "BEFORE", "AFTER"}}
	several := len(clustersOf(results)) > 0
	if several {
		t.Headers = append(t.Headers, "CLUSTERS")
	}
	for _, section := range Sections(results) {
		for _, i := range imageChanges(section.Results) {
			row := []string{i.Action, i.Object.String(), i.Container, i.Before, i.After}
			if several {
				row = append(row, section.names())
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.Write(w, true)
}

// ImagesJSON writes the images that change.
func ImagesJSON(w io.Writer, results []*diff.Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Images []ImageChange `json:"images"`
	}{imageChanges(results)})
}
