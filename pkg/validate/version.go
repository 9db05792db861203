package validate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// selectVersion uses the CustomResourceDefinitions of the Flux version that a FluxInstance installs, unless the user has
// selected a version. A range of several minor versions selects the newest one, to which the cluster may not be upgraded
// yet.
func (c *cluster) selectVersion() error {
	instance := repository.Instance(c.graph)
	if instance == nil {
		return nil
	}
	c.extendCRDs()
	if !c.Assumed || c.CRDsOf == nil {
		return nil
	}
	d, single, ok := controllers.Select(text(instance, "spec", "distribution", "version"))
	if !ok {
		return nil // the API server or flux-operator rejects it, or it is not embedded
	}
	crds, err := c.CRDsOf(d.Version)
	if err == nil {
		c.CRDs, c.FluxVersion, c.Assumed = crds, d.Version, !single
	}
	return err
}

// extendCRDs extends the CustomResourceDefinitions as flux-operator does: Alerts and Receivers accept flux-operator
// kinds.
func (c *cluster) extendCRDs() {
	extended := func(crds []*unstructured.Unstructured) []*unstructured.Unstructured {
		crds = slices.Clone(crds)
		for i, crd := range crds {
			if strings.HasSuffix(crd.GetName(), ".notification.toolkit.fluxcd.io") {
				crds[i] = crd.DeepCopy()
				addKinds(crds[i].Object)
			}
		}
		return crds
	}
	c.CRDs = extended(c.CRDs)
	if of := c.CRDsOf; of != nil {
		c.CRDsOf = func(version string) ([]*unstructured.Unstructured, error) {
			crds, err := of(version)
			return extended(crds), err
		}
	}
}

// addKinds adds the flux-operator kinds to each list of allowed values in a schema that contains Flux kinds.
func addKinds(schema any) {
	switch value := schema.(type) {
	case map[string]any:
		if allowed, _ := value["enum"].([]any); slices.Contains(allowed, any(controllers.Kustomization)) {
			for _, k := range controllers.Operator {
				if !k.Reported {
					allowed = append(allowed, k.Kind)
				}
			}
			value["enum"] = allowed
		}
		for _, below := range value {
			addKinds(below)
		}
	case []any:
		for _, below := range value {
			addKinds(below)
		}
	}
}

// problem identifies a violation across versions of a CustomResourceDefinition.
type problem struct{ rule, field string }

func problemOf(p verdict.Problem) problem { return problem{p.Rule, p.Field} }

// violations returns the problems of each object that occur with the CustomResourceDefinitions of all supported Flux versions
// and of the assumed version: every cluster rejects such an object. It omits unknown fields, because a later version may
// declare them.
func (c *cluster) violations(ctx context.Context, r verdict.Request, verdicts []verdict.Verdict) (map[int]map[problem]bool, error) {
	all := map[int]map[problem]bool{}
	var asked []int
	objects := r.Objects
	r.Objects = nil
	for i, v := range verdicts {
		for _, p := range v.Problems {
			if v.Assumed && c.Assumed && (p.Rule == verdict.RuleSchema || p.Rule == verdict.RuleCEL) {
				if all[i] == nil {
					all[i], asked, r.Objects = map[problem]bool{}, append(asked, i), append(r.Objects, objects[i])
				}
				all[i][problemOf(p)] = true
			}
		}
	}
	if len(asked) == 0 || c.Versions == nil || c.CRDsOf == nil {
		return nil, nil
	}
	for _, version := range controllers.EmbeddedVersions() {
		if version == c.FluxVersion {
			continue
		}
		crds, err := c.CRDsOf(version)
		if err != nil {
			return nil, err
		}
		if r.CRDs, err = encoded(crds); err != nil {
			return nil, err
		}
		verdicts, err := c.Versions.Validate(ctx, r)
		if err != nil {
			return nil, err
		}
		for n, v := range verdicts {
			found := map[problem]bool{}
			for _, p := range v.Problems {
				found[problemOf(p)] = true
			}
			maps.DeleteFunc(all[asked[n]], func(p problem, _ bool) bool { return !found[p] })
		}
	}
	return all, nil
}

// encoded returns the JSON of objects.
func encoded(objects []*unstructured.Unstructured) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, len(objects))
	for i, o := range objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		all[i] = text
	}
	return all, nil
}
