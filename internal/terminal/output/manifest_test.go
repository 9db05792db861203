package output_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/terminal/output"
)

// TestManifest compares the encoding with that of the library.
func TestManifest(t *testing.T) {
	t.Parallel()
	texts := []any{
		"", " ", "a", "yes", "no", "on", "null", "~", "1", "01", "1.0", "1e3", "0x1F", "0o7", ".5", "true", "True", "a: b", "- a", "#", "a #b",
		"one\ntwo", "one\n\n two\n", "\ttab", "trailing ", "é", "\u2028", "\x07", "'", `"`, "{", "[", "*", "&", "!", "%", "@", "`", "|", ">", "2020-01-01",
		"1_000", "12:30", "=", "<<", "very long " + string(make([]byte, 0)) + "line that goes on and on and on and on and on and on and on and on and on and on and on and on",
		int64(0), int64(-5), int64(9223372036854775807), 1.5, 0.1, 1e21, 1e-7, -2.25, true, false, nil,
		[]any{}, map[string]any{}, []any{[]any{"a"}, map[string]any{"b": []any{"c"}}},
	}
	keys := map[string]any{
		"a10": 1, "a9": 1, "A": 1, "_": 1, "b/c": 1, "b.c": 1, "b-c": 1, "1": 1, "10": 1, "yes": 1, "": 1, "a b": 1, "é": 1, "kubernetes.io/x": 1,
	}
	object := map[string]any{"texts": texts, "keys": keys}
	for i, text := range texts {
		object["v"+string(rune('a'+i%26))+string(rune('a'+i/26))] = map[string]any{"value": text}
	}
	want, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	got, err := output.Manifest(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}
