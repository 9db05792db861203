// Package isolation gives the parts of a sandbox a network of their own, which has nothing but a loopback interface.
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

// Check returns an error if this machine does not allow networks for programs. binary is this program.
func Check(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, binary, "part", Command)
	cmd.Env, cmd.SysProcAttr = []string{}, Attributes(&syscall.SysProcAttr{})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("creating a network namespace: %w: %s", err, out)
	}
	return nil
}

// Try creates a network in a process of Check.
func Try() error {
	runtime.LockOSThread()
	return Enter()
}

// Attributes starts a process that may create networks: in a user namespace, where it has no other users.
func Attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Cloneflags |= syscall.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	return a
}

// Enter moves the calling thread, and the processes that it starts from now on, to a new network.
func Enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("creating a network namespace: %w", err)
	}
	// Ports that the kernel chooses here are not those that it chooses for servers of this machine, or that the sandbox
	// chooses, so that the addresses of both can be used in both networks. If /proc is read-only, they rarely conflict.
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
