package plugin

import "io"

// Process is a plugin that runs with the standard streams of this process. On Unix, the plugin
// replaces the process and inherits its streams.
type Process struct {
	Path      string
	Args, Env []string
	In        io.Reader
	Out, Err  io.Writer
}
