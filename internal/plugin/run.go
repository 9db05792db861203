package plugin

import "io"

// Process is a plugin to run. The streams are those of this process: where the
// plugin takes its place, it has them anyway.
type Process struct {
	Path      string
	Args, Env []string
	In        io.Reader
	Out, Err  io.Writer
}
