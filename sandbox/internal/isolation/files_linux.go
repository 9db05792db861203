package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The Landlock access rights for reading files and executing programs, and all rights of the first ABI version.
const (
	reading = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	running = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	first   = 1<<13 - 1 // up to LANDLOCK_ACCESS_FS_MAKE_SYM
)

// ofFiles contains the rights that apply to files, and not only to directories.
const ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

// Files restricts the calling thread, and the processes that it starts afterwards, to the accessible files. Missing paths
// are ignored. On kernels without Landlock, Files has no effect.
func Files(a Access) error {
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if int(version) <= 0 {
		return nil // no Landlock
	}
	all := uint64(first)
	// The rights that each ABI version has added, starting with version 2.
	added := []uint64{unix.LANDLOCK_ACCESS_FS_REFER, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}
	for _, right := range added[:min(int(version)-1, len(added))] {
		all |= right
	}
	attributes := unix.LandlockRulesetAttr{Access_fs: all}
	// The kernel of each version accepts the size of the first version.
	rules, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes.Access_fs), 0)
	if failed != 0 {
		return fmt.Errorf("restricting access to files: %w", failed)
	}
	defer func() { _ = unix.Close(int(rules)) }()
	for _, granted := range []struct {
		paths  []string
		rights uint64
	}{{a.Run, running}, {a.Read, reading}, {a.Write, all}} {
		for _, path := range granted.paths {
			if err := allow(int(rules), path, granted.rights); err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("restricting access to files: %w", err)
	}
	if _, _, failed := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); failed != 0 {
		return fmt.Errorf("restricting access to files: %w", failed)
	}
	return nil
}

// allow adds a rule for a path.
func allow(rules int, path string, rights uint64) error {
	file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restricting access to %s: %w", path, err)
	}
	defer func() { _ = unix.Close(file) }()
	var info unix.Stat_t
	if err := unix.Fstat(file, &info); err != nil {
		return fmt.Errorf("restricting access to %s: %w", path, err)
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(file)}
	if _, _, failed := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); failed != 0 {
		return fmt.Errorf("restricting access to %s: %w", path, failed)
	}
	return nil
}
