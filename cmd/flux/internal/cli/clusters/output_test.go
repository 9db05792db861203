package clusters

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// outputs returns the results of clusters. A text "table" is a table with one row.
func outputs(t *testing.T, all ...[]string) []result {
	t.Helper()
	var results []result
	for i, parts := range all {
		r := result{context: string(rune('a' + i)), out: &capture{}}
		for _, p := range parts {
			var err error
			if headers, row, ok := strings.Cut(p, "|"); ok {
				err = r.out.table(output.Table{Headers: strings.Fields(headers), Rows: [][]string{strings.Fields(row)}}, app.TableStyle{})
			} else {
				_, err = r.out.Write([]byte(p))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		results = append(results, r)
	}
	return results
}

func TestShow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format  string
		results [][]string
		want    string
	}{
		"one table":                   {"", [][]string{{"NAME READY|x True", "\n"}, {"NAME READY|y False"}}, "CLUSTER\tNAME\tREADY \na      \tx   \tTrue \t\nb      \ty   \tFalse\t\n"},
		"other columns":               {"", [][]string{{"NAME|x"}, {"NAME AGE|y 1m"}}, "CLUSTER\tNAME \na      \tx   \t\n\nCLUSTER\tNAME\tAGE \nb      \ty   \t1m \t\n"},
		"nothing on one":              {"", [][]string{{}, {"NAME|y"}}, "CLUSTER\tNAME \nb      \ty   \t\n"},
		"text":                        {"", [][]string{{"healthy\n"}, {"failed\n"}}, "a:\nhealthy\n\nb:\nfailed\n"},
		"table and text":              {"", [][]string{{"healthy\n", "NAME|x"}, {"NAME|y"}}, "a:\nhealthy\nNAME \nx   \t\n\nb:\nNAME \ny   \t\n"},
		"nothing":                     {"", [][]string{{}, {}}, ""},
		"JSON":                        {"json", [][]string{{`{"z": 1, `, `"a": "<"}`}, {}}, "{\n  \"clusters\": [\n    {\n      \"cluster\": \"a\",\n      \"exitCode\": 0,\n      \"result\": {\n        \"z\": 1,\n        \"a\": \"\\u003c\"\n      }\n    },\n    {\n      \"cluster\": \"b\",\n      \"exitCode\": 0\n    }\n  ]\n}\n"},
		"YAML":                        {"yaml", [][]string{{"z: 1\n"}}, "clusters:\n- cluster: a\n  exitCode: 0\n  result:\n    z: 1\n"},
		"JSON with a partial output":  {"json", [][]string{{`{"z": `}}, ""},
		"JSON with several documents": {"json", [][]string{{"{}\n{}\n"}}, ""},
	} {
		var out bytes.Buffer
		a := app.New(strings.NewReader(""), &out, &bytes.Buffer{}, func(string) string { return "" }, time.Now)
		err := show(a, &SeveralError{Format: c.format}, outputs(t, c.results...))
		a.Flush()
		if out.String() != c.want || (err != nil) != (c.format != "" && c.want == "") {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, out.String(), c.want)
		}
	}
}

// TestLines checks that the messages of clusters are not mixed within a line.
func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	all := &prefixed{w: &out}
	a, b := all.of("a"), all.of("b")
	for _, w := range []struct {
		lines *prefixedLines
		text  string
	}{{a, "one "}, {b, "two\nthr"}, {a, "line\n"}, {b, "ee"}} {
		if _, err := w.lines.Write([]byte(w.text)); err != nil {
			t.Fatal(err)
		}
	}
	a.end()
	b.end()
	if want := "b: two\na: one line\nb: three\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	c := &capture{}
	half := bytes.Repeat([]byte("x"), mostOutput/2)
	if _, err := c.Write(half); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(half); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("no error for an output above the limit")
	}
}
