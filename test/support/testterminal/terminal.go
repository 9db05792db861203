// Package testterminal runs programs on a pseudo-terminal for tests and emulates
// its screen.
package testterminal

import (
	"errors"
	"image/color"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// Terminal is a pseudo-terminal on which one program runs.
type Terminal struct {
	// Cmd is the program.
	Cmd    *exec.Cmd
	master *os.File
	ended  chan struct{}

	mu     sync.Mutex
	screen *Screen
	raw    []byte
	// cooked is set if the terminal edits and echoes lines after the program has ended.
	cooked bool
	// full emulates all sequences and responds to the requests of programs. It is nil for programs that only print.
	full *vt.SafeEmulator
}

// Start runs a program on a new terminal. Streams that cmd does not set are
// connected to the terminal.
func Start(cmd *exec.Cmd, columns, lines int) (*Terminal, error) {
	return start(cmd, columns, lines, nil)
}

// StartFull is like Start for a program that uses the whole screen.
func StartFull(cmd *exec.Cmd, columns, lines int) (*Terminal, error) {
	return start(cmd, columns, lines, vt.NewSafeEmulator(columns, lines))
}

func start(cmd *exec.Cmd, columns, lines int, full *vt.SafeEmulator) (*Terminal, error) {
	master, slave, err := open(columns, lines)
	if err != nil {
		return nil, err
	}
	defer func() { _ = slave.Close() }() // inherited by the program
	cmd.Stdin = slave
	if cmd.Stdout == nil {
		cmd.Stdout = slave
	}
	if cmd.Stderr == nil {
		cmd.Stderr = slave
	}
	cmd.SysProcAttr = session()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, master.Close())
	}
	t := &Terminal{Cmd: cmd, master: master, ended: make(chan struct{}), screen: NewScreen(columns, lines), full: full}
	if full != nil {
		go func() { _, _ = io.Copy(master, full) }() // ends with full
	}
	go t.read()
	return t, nil
}

func (t *Terminal) read() {
	defer close(t.ended)
	buffer := make([]byte, 4096)
	for {
		n, err := t.master.Read(buffer)
		t.mu.Lock()
		t.raw = append(t.raw, buffer[:n]...)
		t.screen.Write(buffer[:n])
		t.mu.Unlock()
		if t.full != nil {
			_, _ = t.full.Write(buffer[:n]) // does not fail
		}
		if err != nil {
			return // the program has ended
		}
	}
}

// Resize changes the size of the terminal, which sends a signal to the program.
func (t *Terminal) Resize(columns, lines int) error {
	t.mu.Lock()
	t.screen.Resize(columns, lines)
	t.mu.Unlock()
	if t.full != nil {
		t.full.Resize(columns, lines)
	}
	return resize(int(t.master.Fd()), columns, lines)
}

// Type sends keys; "\x03" is Ctrl-C.
func (t *Terminal) Type(keys string) error {
	_, err := t.master.WriteString(keys)
	return err
}

// Wait waits until the program exits and its output is read. It kills remaining
// children of the program, which would keep the terminal open.
func (t *Terminal) Wait() error {
	err := t.Cmd.Wait()
	kill(t.Cmd.Process.Pid)
	<-t.ended
	t.cooked = cooked(int(t.master.Fd()))
	_ = t.master.Close() // no longer read
	if t.full != nil {
		_ = t.full.Close()
	}
	return err
}

// Shows returns the content of the screen, and the lines that were scrolled off.
func (t *Terminal) Shows() (screen, above string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.String(), t.screen.Above()
}

// Full returns the screen of a program that was started with StartFull, without spaces at the ends of lines, and whether it is
// the alternate screen.
func (t *Terminal) Full() (screen string, alternate bool) {
	var b strings.Builder
	for y := range t.full.Height() {
		var line strings.Builder
		for x := 0; x < t.full.Width(); x++ {
			cell := t.full.CellAt(x, y)
			if cell == nil || cell.Content == "" {
				line.WriteByte(' ')
				continue
			}
			line.WriteString(cell.Content)
			x += max(0, cell.Width-1)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String(), t.full.IsAltScreen()
}

// Style is the style of a character.
type Style struct {
	// Foreground is nil for the default color of the terminal.
	Foreground           color.Color
	Bold, Faint, Reverse bool
}

// Text returns the character at a position of a program that was started with StartFull: "" for the second column of a wide one.
func (t *Terminal) Text(x, y int) string {
	cell := t.full.CellAt(x, y)
	switch {
	case cell == nil || cell.Content == "" && cell.Width > 0:
		return " "
	default:
		return cell.Content
	}
}

// Style returns the style of the character at a position of a program that was started with StartFull.
func (t *Terminal) Style(x, y int) Style {
	cell := t.full.CellAt(x, y)
	if cell == nil {
		return Style{}
	}
	set := func(attribute uint8) bool { return cell.Style.Attrs&attribute != 0 }
	return Style{cell.Style.Fg, set(uv.AttrBold), set(uv.AttrFaint), set(uv.AttrReverse)}
}

// Raw returns everything that was written.
func (t *Terminal) Raw() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.raw)
}

var (
	// modeSequence matches the sequences that set and reset private modes, such as the alternate screen.
	modeSequence = regexp.MustCompile(`\x1b\[\?([0-9;]+)([hl])`)
	// keyboardSequence matches the sequences that push and pop keyboard modes, keysSequence those that set and reset how
	// other keys are reported.
	keyboardSequence = regexp.MustCompile(`\x1b\[([<>])\d*u`)
	keysSequence     = regexp.MustCompile(`\x1b\[>4(;\d+)?m`)
)

// Left lists what a program has changed and not restored: private modes, keyboard modes and, after Wait, raw mode.
func (t *Terminal) Left() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := map[string]bool{}
	for _, m := range modeSequence.FindAllSubmatch(t.raw, -1) {
		for _, mode := range strings.Split(string(m[1]), ";") {
			state[mode] = string(m[2]) == "h"
		}
	}
	var left []string
	for mode, set := range state {
		if set != (mode == "25" || mode == "7") { // the cursor and the wrapping of lines are on
			left = append(left, "mode "+mode)
		}
	}
	pushed := 0
	for _, m := range keyboardSequence.FindAllSubmatch(t.raw, -1) {
		pushed += map[string]int{">": 1, "<": -1}[string(m[1])]
	}
	if pushed > 0 {
		left = append(left, "keyboard modes")
	}
	if all := keysSequence.FindAllSubmatch(t.raw, -1); len(all) > 0 && len(all[len(all)-1][1]) > 0 {
		left = append(left, "other keys")
	}
	select {
	case <-t.ended:
		if !t.cooked {
			left = append(left, "raw mode")
		}
	default:
	}
	slices.Sort(left)
	return left
}
