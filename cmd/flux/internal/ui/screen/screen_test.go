package screen

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/child"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/sites"
	"github.com/fluxkit/flux/pkg/live"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
)

// endingVariable makes the test binary show a dashboard that ends in the given way.
const endingVariable = "TEST_SCREEN_ENDING"

func TestMain(m *testing.M) {
	if ending := os.Getenv(endingVariable); ending != "" {
		os.Exit(showUntil(ending))
	}
	os.Exit(m.Run())
}

// showUntil shows a dashboard without a cluster.
func showUntil(ending string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a := app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv, time.Now)
	a.Environ = os.Environ
	m := newModel(a, sites.List{{Name: "test"}}, &child.Runner{Program: "sleep"})
	err := m.show(ctx, os.Stdout, func(ctx context.Context) {
		m.run.Go(func() {
			m.run.Send(snapshotMsg{state: live.Snapshot{At: time.Now()}})
			switch ending {
			case "background":
				<-time.After(100 * time.Millisecond) // the screen is shown
				panic("planned")
			case "update":
				a.Now = func() time.Time { panic("no time") }
			}
		})
		if ending == "child" {
			m.run.Go(func() { m.run.Start(ctx, []string{"60"}) })
		}
	})
	if err != nil {
		a.Report(err)
		return 2
	}
	return 0
}

// TestEndings checks that the terminal is restored after panics, signals and keys.
func TestEndings(t *testing.T) {
	t.Parallel()
	key := func(keys string) func(*testing.T, *testterminal.Terminal) {
		return func(t *testing.T, terminal *testterminal.Terminal) {
			t.Helper()
			if err := terminal.Type(keys); err != nil {
				t.Error(err)
			}
		}
	}
	send := func(s os.Signal) func(*testing.T, *testterminal.Terminal) {
		return func(t *testing.T, terminal *testterminal.Terminal) {
			t.Helper()
			if err := terminal.Cmd.Process.Signal(s); err != nil {
				t.Error(err)
			}
		}
	}
	for name, test := range map[string]struct {
		ending string
		act    func(*testing.T, *testterminal.Terminal)
		code   int
		says   []string
	}{
		"panic in a goroutine":        {"background", nil, 2, []string{"the dashboard has crashed: planned", "showUntil", crashHint}},
		"panic in an update":          {"update", nil, 2, []string{"no time", "the dashboard has crashed"}},
		"Ctrl-C":                      {"none", key("\x03"), 0, nil},
		"Ctrl-C in the help":          {"none", key("?\x03"), 0, nil},
		"Ctrl-C in the filter":        {"none", key("/a\x03"), 0, nil},
		"Ctrl-C in the jump":          {"none", key(":a\x03"), 0, nil},
		"Ctrl-C while a command runs": {"child", key("\x03"), 0, nil},
		"SIGINT":                      {"none", send(os.Interrupt), 2, nil},
		"SIGTERM":                     {"none", send(syscall.SIGTERM), 2, nil},
		"SIGHUP":                      {"none", send(syscall.SIGHUP), 2, nil},
		"SIGTERM in the help": {"none", func(t *testing.T, terminal *testterminal.Terminal) {
			t.Helper()
			key("?")(t, terminal)
			send(syscall.SIGTERM)(t, terminal)
		}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), endingVariable+"="+test.ending, "TERM=xterm-256color")
			terminal, err := testterminal.StartFull(cmd, 80, 24)
			if err != nil {
				t.Fatal(err)
			}
			if test.act != nil {
				awaitAlternate(t, terminal)
				test.act(t, terminal)
			}
			_ = terminal.Wait() // the code is compared
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("the exit code is %d, want %d", code, test.code)
			}
			if left := terminal.Left(); len(left) > 0 {
				t.Errorf("the terminal is left with %q", left)
			}
			for _, text := range test.says {
				if !strings.Contains(terminal.Raw(), text) {
					t.Errorf("%q is missing in %q", text, terminal.Raw())
				}
			}
		})
	}
}

// awaitAlternate waits until the dashboard is shown.
func awaitAlternate(t *testing.T, terminal *testterminal.Terminal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	for {
		screen, alternate := terminal.Full()
		if alternate && strings.Contains(screen, "space mark") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the dashboard shows:\n%s", screen)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestResumed checks that the dashboard only ends if it cannot use the terminal again.
func TestResumed(t *testing.T) {
	t.Parallel()
	m := newModel(app.New(nil, nil, nil, os.Getenv, time.Now), sites.List{{Name: "test"}}, nil)
	if cmd := resumed(m, resumedMsg{child.ErrNotStopped}); cmd != nil || !strings.Contains(m.status, "job control") {
		t.Errorf("without job control: status %q", m.status)
	}
	if cmd := resumed(m, resumedMsg{}); cmd != nil {
		t.Error("the dashboard ends although it was continued")
	}
	if cmd := resumed(m, resumedMsg{os.ErrClosed}); cmd == nil {
		t.Error("the dashboard goes on without a terminal")
	} else if _, quits := cmd().(tea.QuitMsg); !quits {
		t.Error("the dashboard does not quit")
	}
}
