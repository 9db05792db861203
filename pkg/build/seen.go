package build

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// seenSecrets holds the values of Secrets that templates have looked up.
type seenSecrets struct {
	mu     sync.Mutex
	values []string
}

// watch returns a finder that records the values of the Secrets it finds.
func (s *seenSecrets) watch(find Finder) Finder {
	if find == nil {
		return nil
	}
	return func(ctx context.Context, wanted Wanted) (map[string]any, error) {
		found, err := find(ctx, wanted)
		if err != nil || found == nil || wanted.Kind != "Secret" {
			return found, err
		}
		items, listed, _ := unstructured.NestedSlice(found, "items")
		if !listed {
			items = []any{found}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, item := range items {
			m, _ := item.(map[string]any)
			secret := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": m["data"]}}
			data, err := DataOf(secret)
			if err != nil {
				continue // templates cannot read invalid data either
			}
			for _, value := range data {
				if len(value) > 0 {
					s.values = append(s.values, string(value))
				}
			}
		}
		return found, nil
	}
}
