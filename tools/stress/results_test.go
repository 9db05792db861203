package main

import (
	"strings"
	"testing"
)

// TestReport checks which results count as failures of which test.
func TestReport(t *testing.T) {
	t.Parallel()
	const first = `go: downloading something
{"Action":"run","Package":"github.com/fluxkit/flux/pkg/a","Test":"TestA"}
{"Action":"output","Package":"github.com/fluxkit/flux/pkg/a","Test":"TestA","Output":"it broke\n"}
{"Action":"fail","Package":"github.com/fluxkit/flux/pkg/a","Test":"TestA","Elapsed":3}
{"Action":"output","Package":"github.com/fluxkit/flux/pkg/a","Test":"TestB","Output":"--- FAIL: no failure\n"}
{"Action":"pass","Package":"github.com/fluxkit/flux/pkg/a","Test":"TestB","Elapsed":1}
{"Action":"fail","Package":"github.com/fluxkit/flux/pkg/a","Elapsed":4}
`
	const second = `{"Action":"pass","Package":"github.com/fluxkit/flux/pkg/a","Test":"TestA","Elapsed":1}
{"kind":"List"}
{not JSON
`
	r := results{}
	for _, output := range []string{first, second} {
		if err := r.read(strings.NewReader(output)); err != nil {
			t.Fatal(err)
		}
	}
	report := r.report(1)
	for _, line := range []string{
		"       1     1      4.0 s      4.0 s  pkg/a\n",
		"       1     2      3.0 s      3.0 s  pkg/a TestA\n",
		"\n=== pkg/a TestA\nit broke\n",
	} {
		if !strings.Contains(report, line) {
			t.Errorf("the report has no %q:\n%s", line, report)
		}
	}
	if strings.Contains(report, "TestB") {
		t.Errorf("a test that passed is listed although only one is requested:\n%s", report)
	}
}
