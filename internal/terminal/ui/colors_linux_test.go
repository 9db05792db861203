package ui_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/fluxkit/flux/internal/terminal/ui"
)

// TestColors checks the variables on a terminal and in a pipe.
func TestColors(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := terminal.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, test := range map[string]struct {
		env            map[string]string
		terminal, pipe bool
	}{
		"nothing set":              {nil, true, false},
		"NO_COLOR":                 {map[string]string{"NO_COLOR": "1"}, false, false},
		"NO_COLOR before FORCE":    {map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false, false},
		"CLICOLOR=0":               {map[string]string{"CLICOLOR": "0"}, false, false},
		"CLICOLOR=1":               {map[string]string{"CLICOLOR": "1"}, true, false},
		"CLICOLOR_FORCE=1":         {map[string]string{"CLICOLOR_FORCE": "1"}, true, true},
		"CLICOLOR_FORCE=0":         {map[string]string{"CLICOLOR_FORCE": "0"}, true, false},
		"FORCE before CLICOLOR":    {map[string]string{"CLICOLOR_FORCE": "1", "CLICOLOR": "0"}, true, true},
		"dumb terminal":            {map[string]string{"TERM": "dumb"}, false, false},
		"dumb terminal with FORCE": {map[string]string{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, true, true},
	} {
		env := func(name string) string { return test.env[name] }
		if got := ui.Colors(&bytes.Buffer{}, env); got != test.pipe {
			t.Errorf("%s, in a pipe: %v", name, got)
		}
		if got := ui.Colors(terminal, env); got != test.terminal {
			t.Errorf("%s, on a terminal: %v", name, got)
		}
	}
}
