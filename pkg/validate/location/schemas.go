// Package location reads schemas that are not in the repository: from directories and HTTPS servers. Addresses are templates as
// in kubeconform.
package location

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

const (
	// kindsMax is the maximum number of kinds to search schemas for, and parallel the maximum number of concurrent
	// requests.
	kindsMax, parallel = 1000, 8
	// readMax and filesMax bound the bytes and files that are read from all locations.
	readMax, filesMax = 256 << 20, 20_000
)

// Settings configure the access to locations.
type Settings struct {
	// Agent is the User-Agent of requests, and Cache the directory for responses, "" for none.
	Agent, Cache string
	Now          func() time.Time
}

// Schemas implements verdict.Schemas. It validates objects of kinds that are missing in other Schemas.
type Schemas struct {
	verdict.Schemas
	settings Settings
	places   []*place
	reads    *budget.Budget
	mu       sync.Mutex
	kinds    map[schema.GroupVersionKind]outcome
}

// outcome is a schema or the reason why it cannot be used. It is empty if no location contains a schema.
type outcome struct {
	*document
	err error
}

// New returns Schemas with the locations that the values of --schema-location select.
func New(values []string, base verdict.Schemas, settings Settings) (*Schemas, error) {
	s := &Schemas{
		Schemas: base, settings: settings, kinds: map[schema.GroupVersionKind]outcome{},
		reads: budget.New(budget.Limits{Bytes: readMax, Files: filesMax, FileBytes: schemaMax}),
	}
	for _, value := range values {
		if value == "default" { // in kubeconform, the Kubernetes schemas, which flux contains
			continue
		}
		p, err := newPlace(value)
		if err != nil {
			return nil, err
		}
		s.places = append(s.places, p)
	}
	return s, nil
}

// Validate implements verdict.Schemas.
func (s *Schemas) Validate(ctx context.Context, r verdict.Request) ([]verdict.Verdict, error) {
	verdicts, err := s.Schemas.Validate(ctx, r)
	if err != nil || len(s.places) == 0 {
		return verdicts, err
	}
	kinds := map[int]schema.GroupVersionKind{}
	for i, v := range verdicts {
		if i < len(r.Objects) && v.MissingSchema {
			o := &unstructured.Unstructured{}
			if err := json.Unmarshal(r.Objects[i], &o.Object); err != nil {
				return nil, err
			}
			kinds[i] = o.GroupVersionKind()
		}
	}
	if err := s.search(ctx, kinds, r.Kubernetes); err != nil {
		return nil, err
	}
	further, asked := verdict.Request{Kubernetes: r.Kubernetes}, []int(nil)
	added := map[schema.GroupVersionKind]bool{}
	for i := range verdicts {
		kind, missing := kinds[i]
		if !missing {
			continue
		}
		switch found := s.kinds[kind]; {
		case found.err != nil:
			verdicts[i] = unusable(found.err.Error())
		case found.document == nil:
			verdicts[i].Unknown += ", and no schema location has a schema"
		default:
			asked, further.Objects = append(asked, i), append(further.Objects, r.Objects[i])
			switch {
			case added[kind]:
			case found.crd:
				further.CRDs = append(further.CRDs, found.text)
			default:
				further.Schemas = append(further.Schemas, verdict.Schema{Kind: kind, Text: found.text})
			}
			added[kind] = true
		}
	}
	if len(asked) == 0 {
		return verdicts, nil
	}
	results, err := s.Schemas.Validate(ctx, further)
	if err != nil {
		return nil, err
	}
	for n, result := range results {
		name := s.kinds[kinds[asked[n]]].name
		if result.Unknown != "" {
			result = unusable(name + ": " + result.Unknown)
		}
		result.Assumed, result.Source = false, name
		verdicts[asked[n]] = result
	}
	return verdicts, nil
}

// unusable returns the validation result for an object whose schema cannot be used.
func unusable(reason string) verdict.Verdict {
	return verdict.Verdict{Unknown: "its schema cannot be used: " + reason, Unreadable: true, Fix: "correct the schema or --schema-location"}
}

// search finds the schemas of kinds that have not been searched yet.
func (s *Schemas) search(ctx context.Context, kinds map[int]schema.GroupVersionKind, kubernetes string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(kinds) > 0 && len(s.kinds) == 0 {
		s.trim()
		for _, p := range s.places {
			if p.crds == nil {
				continue
			}
			if err := p.search(ctx, s); err != nil {
				return err
			}
		}
	}
	var wanted []schema.GroupVersionKind
	for _, kind := range kinds {
		if _, known := s.kinds[kind]; !known {
			s.kinds[kind], wanted = outcome{}, append(wanted, kind)
		}
	}
	if len(s.kinds) > kindsMax {
		return budget.TooMany("", "the repository", "kinds without a CustomResourceDefinition", kindsMax)
	}
	found := make([]outcome, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, kind := range wanted {
		group.Go(func() error {
			found[i] = s.find(ctx, kind, kubernetes)
			return context.Cause(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, kind := range wanted {
		s.kinds[kind] = found[i]
	}
	return nil
}

// find returns the schema from the first location that contains one. An unreadable location ends the search, because it may
// contain a different schema than the next location.
func (s *Schemas) find(ctx context.Context, kind schema.GroupVersionKind, kubernetes string) outcome {
	for _, p := range s.places {
		if found, err := p.find(ctx, s, kind, kubernetes); found != nil || err != nil {
			return outcome{found, err}
		}
	}
	return outcome{}
}
