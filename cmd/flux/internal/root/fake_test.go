package root

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// outcome is the result of a command line.
type outcome struct {
	Code     int
	Out, Err string
}

// flux runs a command line against a fake API.
func flux(ctx context.Context, s *fakeapi.Server, args ...string) outcome {
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(string) string { return "" }, func() time.Time { return time.Unix(0, 0) })
	a.Client = func() (*kube.Client, error) { return s.Client, nil }
	code := Run(ctx, a, args)
	return outcome{code, out.String(), err.String()}
}

func expect(t *testing.T, got, want outcome) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
