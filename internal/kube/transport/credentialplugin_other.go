//go:build !linux

package transport

// EndCredentialPlugins does nothing, because this system provides no list of child processes.
func EndCredentialPlugins() {}
