package plugin

import "syscall"

const (
	sharingViolation = syscall.Errno(32)
	deleteOnClose    = 0x04000000
)

// lockFile takes an exclusive lock without waiting: a file that is not shared and is deleted when
// it is closed.
func lockFile(path string) (unlock func() error, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL|deleteOnClose, 0)
	if err == sharingViolation { //nolint:errorlint // CreateFile returns the number itself
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	return func() error { return syscall.CloseHandle(handle) }, nil
}
