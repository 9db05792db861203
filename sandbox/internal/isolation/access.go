package isolation

// Access lists the files that a process can access.
type Access struct {
	// Run are programs. Read and Write are files, and directories with all files below them. Those in Write can also be read and run.
	Run, Read, Write []string
}
