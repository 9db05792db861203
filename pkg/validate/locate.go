package validate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/repository"
)

// locate finds the files and the lines of the findings.
func (c *cluster) locate() error {
	wanted := make([]repository.Wanted, len(c.findings))
	for i, f := range c.findings {
		wanted[i] = repository.Wanted{Object: f.Object.ID, Applier: applierOf(c, &c.findings[i]), Field: f.Field, Value: f.Value}
	}
	places, err := repository.Locate(c.graph, wanted)
	if err != nil {
		return err
	}
	for i, at := range places {
		if f := &c.findings[i]; f.File == "" {
			f.File, f.Line = at.File, at.Line
		}
	}
	return nil
}

// applierOf returns the Kustomization whose files contain the object of a finding, or the owner of a chart.
func applierOf(c *cluster, f *Finding) *unstructured.Unstructured {
	if f.Owner != f.Object {
		return c.owners[f.Owner.ID]
	}
	if o := c.byRef[f.Object.ID]; o != nil {
		return o.side.Owner
	}
	return c.graph.Root()
}
