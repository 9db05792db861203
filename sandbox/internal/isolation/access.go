package isolation

// Access lists the files that a process can access.
type Access struct {
	// Run lists programs, Read and Write list files and whole directories. Files in Write can also be read and executed.
	Run, Read, Write []string
}
