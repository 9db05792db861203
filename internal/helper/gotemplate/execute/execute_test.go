package execute_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/helper/gotemplate"
	"github.com/fluxkit/flux/internal/helper/gotemplate/execute"
)

func TestExecute(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{"metadata": {"name": "app"}, "data": {"key": "dmFsdWU="}, "items": [{"n": 1}, {"n": 2.5}, {"n": 10000000}]}`)
	for template, want := range map[string]string{
		"{{.metadata.name}}":                          "app",
		"{{.metadata.none}}":                          "<no value>",
		"{{range .items}}{{.n}} {{end}}":              "1 2.5 10000000 ",
		"{{.data.key | base64decode}}":                "value",
		`{{if exists . "metadata" "name"}}yes{{end}}`: "yes",
		"{{.metadata.name.first}}":                    "error: can't evaluate field first",
		"{{unknown .}}":                               `error: function "unknown" not defined`,
		"{{range $i, $_ := .items}}{{$i}}{{end}}":     "012",
		`{{range .items}}{{range $.items}}{{range $.items}}{{range $.items}}{{printf "%1000000s" "x"}}{{end}}{{end}}{{end}}{{end}}`: "error: larger than 64 MiB",
		"{{.metadata.name.String.Bytes.NoSuch.Method}}": "error: can't evaluate field",
	} {
		got, err := execute.Execute(t.Context(), gotemplate.Input{Template: template, Object: object})
		text, fails := strings.CutPrefix(want, "error: ")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), text) || got != ""):
			t.Errorf("%s: %q, %v, want an error with %q", template, got, err, text)
		case !fails && (err != nil || got != want):
			t.Errorf("%s: %q, %v, want %q", template, got, err, want)
		}
	}
}
