//go:build !linux

package transport

// EndCredentialPlugins does nothing: this system does not list the child processes of a process.
func EndCredentialPlugins() {}
