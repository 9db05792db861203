package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// schemas lists schema locations of validate.
func schemas() []other {
	row := func(name, file, text string, printed string) other {
		files := map[string]string{
			"cluster/w.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: apps}\n", "schemas/" + file: text,
		}
		r := row{name: "validate, " + name, files: files, make: commit, dir: true, exit: 2, want: "could not be determined", stdout: printed}
		return other{r, []string{"validate", "--path", "cluster", "--schema-location", "schemas"}}
	}
	var doubling strings.Builder
	for i := range 25 {
		fmt.Fprintf(&doubling, `"d%d": {"properties": {"a": {"$ref": "#/definitions/d%d"}, "b": {"$ref": "#/definitions/d%d"}}}, `, i, i+1, i+1)
	}
	const json = "example.com/widget_v1.json"
	large := row("a schema of 1 TB", json, "", "widget_v1.json: the file is larger than 8 MiB")
	large.want, large.stdout = large.stdout, ""
	large.make = func(t *testing.T, folder string) {
		t.Helper()
		commit(t, folder)
		if err := os.Truncate(filepath.Join(folder, "schemas", json), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	return []other{
		row("a schema whose references expand to 2^25 schemas", json, `{"definitions": {`+doubling.String()+`"d25": {}}, "$ref": "#/definitions/d0"}`, "the schema has more than 200000 nodes"),
		row("a schema that refers to itself", json, `{"properties": {"spec": {"$ref": "#"}}}`, "or refers to itself"),
		row("a schema that refers to a file", json, `{"properties": {"spec": {"$ref": "file:///etc/passwd"}}}`, "the schema refers to another document: file:///etc/passwd"),
		row("a schema of YAML aliases", json, bomb(9), "the YAML aliases expand to more than 1000000 nodes"),
		large,
	}
}
