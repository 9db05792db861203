package screen

// stop returns errNotStopped: Windows has no job control.
func stop() error { return errNotStopped }
