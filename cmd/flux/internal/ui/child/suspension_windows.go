package child

// stop returns ErrNotStopped: Windows has no job control.
func stop() error { return ErrNotStopped }
