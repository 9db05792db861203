package script_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
)

// beginOnTerminal runs a command on a terminal of its own while the script
// goes on: terminal NAME COLUMNSxLINES COMMAND ARG…
func beginOnTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal NAME COLUMNSxLINES COMMAND ARG…")
	}
	beginWith(ts, args, testterminal.Start)
}

// beginDashboard is terminal for a program that uses the whole screen: dashboard NAME COLUMNSxLINES COMMAND ARG…
func beginDashboard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: dashboard NAME COLUMNSxLINES COMMAND ARG…")
	}
	beginWith(ts, args, testterminal.StartFull)
}

func beginWith(ts *testscript.TestScript, args []string, start func(*exec.Cmd, int, int) (*testterminal.Terminal, error)) {
	b := ts.Value(backgroundKey{}).(*background)
	j := newJob(ts, b, args[2:])
	columns, lines := sizeOf(ts, args[1])
	var err error
	j.terminal, err = start(j.cmd, columns, lines)
	ts.Check(err)
	b.jobs[args[0]] = j
	go func() {
		defer close(j.ended)
		// The exit code is in ProcessState; the error is not needed.
		_ = j.terminal.Wait()
	}()
	ts.Defer(func() {
		_ = j.cmd.Process.Kill() // it has ended already where the script is right
		<-j.ended
	})
}

func sizeOf(ts *testscript.TestScript, size string) (columns, lines int) {
	if n, err := fmt.Sscanf(size, "%dx%d", &columns, &lines); err != nil || n != 2 {
		ts.Fatalf("%q is not a size such as 80x24", size)
	}
	return columns, lines
}

func terminalOf(ts *testscript.TestScript, name string) *testterminal.Terminal {
	j := jobOf(ts, name)
	if j.terminal == nil {
		ts.Fatalf("%s does not run on a terminal", name)
	}
	return j.terminal
}

// resizeTerminal changes the size of a window: resize NAME COLUMNSxLINES
func resizeTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: resize NAME COLUMNSxLINES")
	}
	columns, lines := sizeOf(ts, args[1])
	ts.Check(terminalOf(ts, args[0]).Resize(columns, lines))
}

// typeKeys types what a person would, ^C for Ctrl-C and ^M for Enter: types NAME KEYS
func typeKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: types NAME KEYS")
	}
	ts.Check(terminalOf(ts, args[0]).Type(strings.NewReplacer("^C", "\x03", "^M", "\r", "^D", "\x04", "^U", "\x15", "^Z", "\x1a", "^[", "\x1b", "^I", "\t").Replace(args[1])))
}

// shows waits until the screen shows exactly what is in a file, the namespace
// masked: shows NAME FILE
func shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shows NAME FILE")
	}
	terminal := terminalOf(ts, args[0])
	data, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	want, screen := string(data), ""
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		screen, _ = terminal.Shows()
		if screen = strings.ReplaceAll(screen, ts.Getenv("NS"), "NSNS"); screen == want {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			ts.Fatalf("%s does not show %s after %s:\n%s\nall that was written: %q", args[0], args[1], testlimit.Wait, cmp.Diff(want, screen), terminal.Raw())
		}
	}
}

// changing matches ages and times on the screen of a dashboard, with the spaces that fill their cells.
var changing = regexp.MustCompile(`\b(\d+[smh][0-9smh]*|\d{4}-\d\d-\d\dT[0-9:.]+Z|http://127[0-9.:]+|[0-9a-f-]{36}|resourceVersion: "\d+") *`)

// ageHeader matches the header of a column of ages, which is as wide as the longest one.
var ageHeader = regexp.MustCompile(`\bAGE +`)

// steady returns the screen of a dashboard with ages and times that do not change.
func steady(screen string) string {
	screen = ageHeader.ReplaceAllString(screen, "AGE ")
	return strings.ReplaceAll(changing.ReplaceAllString(screen, "A "), "A \n", "A\n")
}

// views waits until the screen of a dashboard has a line with each pattern and none with a pattern after "!": views NAME [!]PATTERN…
// With the name of a file, it waits until the screen is its content, apart from ages.
func views(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: views NAME FILE, or views NAME [!]PATTERN…")
	}
	terminal := terminalOf(ts, args[0])
	missing := func(screen string) string { return missingPattern(ts, screen, args[1:]) }
	if data, err := os.ReadFile(ts.MkAbs(args[1])); err == nil && len(args) == 2 {
		missing = func(screen string) string {
			return cmp.Diff(string(data), steady(strings.ReplaceAll(screen, ts.Getenv("NS"), "NSNS")))
		}
		if os.Getenv("UPDATE") != "" {
			updateScreen(ts, args[1], func() string {
				screen, _ := terminal.Full()
				return steady(strings.ReplaceAll(screen, ts.Getenv("NS"), "NSNS"))
			})
			return
		}
	}
	diff := ""
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		screen, _ := terminal.Full()
		if diff = missing(screen); diff == "" {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			ts.Fatalf("%s: %s after %s:\n%s", args[0], diff, testlimit.Wait, screen)
		}
	}
}

// updateScreen replaces a file in the archive of the script with a screen that has not changed for a while.
func updateScreen(ts *testscript.TestScript, name string, screen func() string) {
	const settled = 2 * time.Second
	last, since := screen(), time.Now()
	for time.Since(since) < settled {
		time.Sleep(settled / 20)
		if now := screen(); now != last {
			last, since = now, time.Now()
		}
	}
	paths, err := filepath.Glob(filepath.Join("testdata", "*", "*", ts.Name()+".txtar"))
	ts.Check(err)
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		ts.Check(err)
		for i, file := range archive.Files {
			if file.Name == name {
				archive.Files[i].Data = []byte(last)
			}
		}
		ts.Check(os.WriteFile(path, txtar.Format(archive), 0o600))
	}
}

// missingPattern returns the first pattern that the screen contradicts, or "".
func missingPattern(ts *testscript.TestScript, screen string, patterns []string) string {
	for _, pattern := range patterns {
		expression, absent := strings.CutPrefix(pattern, "!")
		re, err := regexp.Compile("(?m)" + expression)
		ts.Check(err)
		if re.MatchString(screen) == absent {
			return "the screen contradicts " + pattern
		}
	}
	return ""
}

// lacks is the opposite of reads, for a program that has exited: lacks NAME PATTERN
func lacks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lacks NAME PATTERN")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	if raw := allOf(ts, args[0]); raw == "" || re.MatchString(raw) {
		ts.Fatalf("%s has written nothing, or %s: %q", args[0], args[1], raw)
	}
}

// written stores all that a program which has exited wrote to its terminal: written NAME FILE
func written(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: written NAME FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(allOf(ts, args[0])), 0o600))
}

// allOf returns all that a program which has exited wrote to its terminal.
func allOf(ts *testscript.TestScript, name string) string {
	select {
	case <-jobOf(ts, name).ended:
	default:
		ts.Fatalf("%s has not ended", name)
	}
	return linesOf(ts, name)
}

// linesOf returns what was written to a terminal so far, with the line endings of files.
func linesOf(ts *testscript.TestScript, name string) string {
	return strings.ReplaceAll(terminalOf(ts, name).Raw(), "\r\n", "\n")
}

// reads waits until what was written to a terminal has a match of a pattern,
// also of what is not shown any more: reads NAME PATTERN
func reads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: reads NAME PATTERN")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		raw := linesOf(ts, args[0])
		if re.MatchString(raw) {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			ts.Fatalf("%s has not written %s after %s: %q", args[0], args[1], testlimit.Wait, raw)
		}
	}
}

// restored waits until a terminal is as a program found it: no alternate screen, mouse, bracketed paste or raw mode, and with
// a cursor: restored NAME
func restored(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: restored NAME")
	}
	terminal := terminalOf(ts, args[0])
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		left := terminal.Left()
		if len(left) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			ts.Fatalf("%s leaves the terminal with %q after %s: %q", args[0], left, testlimit.Wait, terminal.Raw())
		}
	}
}
