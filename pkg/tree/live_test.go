package tree

import (
	"reflect"
	"testing"
)

// TestWholeNumbers checks that the given object, which other goroutines may
// read, is not changed.
func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	o := map[string]any{
		"metadata": map[string]any{"generation": 2.0},
		"status":   map[string]any{"ratio": 0.5, "ports": []any{80.0, "http", map[string]any{"n": 1.0}}},
	}
	want := map[string]any{
		"metadata": map[string]any{"generation": int64(2)},
		"status":   map[string]any{"ratio": 0.5, "ports": []any{int64(80), "http", map[string]any{"n": int64(1)}}},
	}
	if got := wholeNumbers(o); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if o["metadata"].(map[string]any)["generation"] != 2.0 || o["status"].(map[string]any)["ports"].([]any)[0] != 80.0 {
		t.Errorf("the object was changed: %v", o)
	}
}
