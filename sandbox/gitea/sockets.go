package main

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"code.gitea.io/gitea/modules/graceful"
)

// firstSocket is the first inherited file descriptor after the standard streams.
const firstSocket = 3

// useSockets makes Gitea listen on count inherited sockets, so that the parent process
// determines the ports and no other program can take them. The systemd socket protocol is
// not used, because Gitea would treat it as a restart and terminate its parent.
func useSockets(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("counting the inherited sockets: %w", err)
	}
	inherited := map[string]net.Listener{}
	for i := range n {
		f := os.NewFile(uintptr(firstSocket+i), "socket")
		l, err := net.FileListener(f)
		if err != nil {
			return fmt.Errorf("using inherited socket %d: %w", i, err)
		}
		if err := f.Close(); err != nil { // the listener has a duplicate that children do not inherit
			return err
		}
		inherited[l.Addr().String()] = l
	}
	graceful.GetListener = func(network, address string) (net.Listener, error) {
		if l, found := inherited[address]; found {
			graceful.GetManager().InformCleanup() // registers the server for the shutdown
			return l, nil
		}
		return graceful.DefaultGetListener(network, address)
	}
	return nil
}
