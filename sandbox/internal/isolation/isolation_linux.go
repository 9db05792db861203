// Package isolation runs the components of a sandbox in a separate network namespace with only a loopback interface.
package isolation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is the argument of "flux-sandbox part" that runs Try.
const Command = "isolated"

// Check returns an error if users cannot create network namespaces. binary is the path of this program.
func Check(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, binary, "part", Command)
	cmd.Env, cmd.SysProcAttr = []string{}, Attributes(&syscall.SysProcAttr{})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("creating a network namespace: %w: %s", err, out)
	}
	return nil
}

// Try creates a network namespace. Check runs it in a separate process.
func Try() error {
	runtime.LockOSThread()
	return Enter()
}

// Attributes allows a process to create network namespaces, in a user namespace that contains only its user.
func Attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Cloneflags |= syscall.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	return a
}

// Enter moves the calling thread, and the processes that it starts afterwards, to a new network namespace.
func Enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("creating a network namespace: %w", err)
	}
	// The kernel must not choose the same ports here as for servers on this machine or as the sandbox, so that all
	// addresses can be used in both networks. If /proc is read-only, conflicts are rare.
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("1024 19999"), 0)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket in the network namespace: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("naming the loopback interface: %w", err)
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("starting the loopback interface: %w", err)
	}
	return nil
}
