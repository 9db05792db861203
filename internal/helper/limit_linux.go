package helper

import "syscall"

// limitData limits the writable memory of this process.
func limitData(most uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most})
}
