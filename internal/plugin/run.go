package plugin

import "io"

// Process is a plugin to run with the streams of this process. On Unix the plugin replaces the
// process and inherits them.
type Process struct {
	Path      string
	Args, Env []string
	In        io.Reader
	Out, Err  io.Writer
}
