package kubelet

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/fluxkit/flux/sandbox/internal/isolation"
)

// allowGnuPG allows a process to run gpg, which is linked in the directory with programs, and its agent. Both read system
// libraries, and their keys are in temporary directories.
func allowGnuPG(a *isolation.Access, programs string) {
	gpg, err := filepath.EvalSymlinks(filepath.Join(programs, "gpg"))
	if err != nil {
		return
	}
	a.Run = append(a.Run, gpg, filepath.Join(filepath.Dir(gpg), "gpg-agent"))
	for _, loader := range []string{"/lib*/ld-linux*", "/lib/ld-musl*"} {
		found, _ := filepath.Glob(loader) // the pattern is valid
		a.Run = append(a.Run, found...)
	}
	a.Read = append(a.Read, "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/etc/ld-musl-x86_64.path", "/etc/gnupg", "/usr/share/gnupg")
}

// socketPath is the maximum length of the path of a socket on all systems, and gpgSocket is the longest path of a socket of
// gpg-agent in a directory for temporary files, in which SOPS creates a directory with keys.
const (
	socketPath = 103
	gpgSocket  = "/sops-gnupghome-4294967295/S.gpg-agent.browser"
)

// temporary returns the directory for temporary files of a process: dir, or a link to dir if the socket paths in dir are too
// long. remove removes the link after the process has exited.
func temporary(dir string) (path string, remove func() error) {
	remove = func() error { return nil }
	if len(dir)+len(gpgSocket) <= socketPath {
		return dir, remove
	}
	links, err := os.MkdirTemp("/tmp", "flux-")
	if err != nil {
		return dir, remove // only gpg needs the link
	}
	link := filepath.Join(links, "t")
	if err := os.Symlink(dir, link); err != nil {
		return dir, func() error { return os.Remove(links) }
	}
	return link, func() error { return errors.Join(os.Remove(link), os.Remove(links)) }
}
