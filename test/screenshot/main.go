// Command screenshot runs a program in a virtual terminal and writes its screen as an SVG picture:
//
//	go run ./test/screenshot [-size COLUMNSxLINES] [-type KEYS] -until TEXT PROGRAM ARGUMENT… > picture.svg
//
// It types KEYS when the screen contains the -until TEXT, and then waits for the -then TEXT. test/pictures.sh uses it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fluxkit/flux/test/support/testterminal"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run() error {
	size := flag.String("size", "100x24", "columns and lines of the terminal")
	until := flag.String("until", "", "regular expression that the screen must match")
	keys := flag.String("type", "", "keys to type afterwards")
	then := flag.String("then", "", "regular expression that the screen must match after the keys")
	flag.Parse()
	var columns, lines int
	if _, err := fmt.Sscanf(*size, "%dx%d", &columns, &lines); err != nil || flag.NArg() == 0 || *until == "" {
		return errors.New("usage: screenshot [-size COLUMNSxLINES] -until TEXT [-type KEYS -then TEXT] PROGRAM ARGUMENT…")
	}
	cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	terminal, err := testterminal.StartFull(cmd, columns, lines)
	if err != nil {
		return err
	}
	err = await(terminal, *until)
	if err == nil && *keys != "" {
		if err = terminal.Type(*keys); err == nil {
			err = await(terminal, *then)
		}
	}
	picture := svg(terminal, columns, lines)
	_ = cmd.Process.Kill()
	_ = terminal.Wait() // it was killed
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(picture)
	return err
}

// await waits until the screen matches a regular expression.
func await(t *testterminal.Terminal, text string) error {
	pattern, err := regexp.Compile(text)
	if err != nil {
		return err
	}
	for range 600 {
		screen, _ := t.Full()
		if pattern.MatchString(screen) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	screen, _ := t.Full()
	return fmt.Errorf("the screen does not contain %q after one minute:\n%s", text, screen)
}

// The size of a character in the picture, and the margin around the screen.
const (
	charWidth, lineHeight, margin = 8.4, 18, 12
	paper, ink, faint             = "#1c2128", "#d0d7de", "#8b949e"
)

// palette are the terminal colors that the dashboard uses.
func palette(c color.Color) string {
	switch c {
	case nil:
		return ""
	case ansi.BasicColor(1):
		return "#ff7b72"
	case ansi.BasicColor(2):
		return "#56d364"
	case ansi.BasicColor(3):
		return "#e3b341"
	case ansi.BasicColor(6):
		return "#76e3ea"
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// svg draws the screen. Each run of characters with the same style is one element with a fixed width, so that columns are
// aligned in every font.
func svg(t *testterminal.Terminal, columns, lines int) string {
	var b strings.Builder
	width, height := float64(columns)*charWidth+2*margin, lines*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	for y := range lines {
		for x := 0; x < columns; {
			style, text, from := t.Style(x, y), "", x
			for ; x < columns && t.Style(x, y) == style; x++ {
				text += t.Text(x, y)
			}
			left, top := margin+float64(from)*charWidth, margin+y*lineHeight
			length := float64(x-from) * charWidth
			foreground := palette(style.Foreground)
			if style.Faint {
				foreground = faint
			}
			if style.Reverse {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, top, length, lineHeight, or(foreground, ink))
				foreground = paper
			}
			if strings.TrimSpace(text) == "" {
				continue
			}
			attributes := ""
			if style.Bold {
				attributes = ` font-weight="bold"`
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" fill="%s" xml:space="preserve"%s>%s</text>`+"\n",
				left, top+lineHeight-5, length, or(foreground, ink), attributes, escape(text))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func or(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
