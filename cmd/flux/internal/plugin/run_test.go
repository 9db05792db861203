package plugin

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

func TestFirstWord(t *testing.T) {
	t.Parallel()
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	flags := pflag.NewFlagSet("flux", pflag.ContinueOnError)
	a.Global.Add(flags, "")
	for line, want := range map[string]string{
		"operator get": "operator", "--context x operator": "operator", "--context=x operator": "operator",
		"-n x operator": "operator", "-nx operator": "operator", "--verbose operator": "operator",
		"--unknown operator": "operator", "-": "-", "-n": "", "--context": "", "-- operator": "", "": "",
	} {
		args := strings.Fields(line)
		got := ""
		if i := firstWord(flags, args); i < len(args) {
			got = args[i]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
