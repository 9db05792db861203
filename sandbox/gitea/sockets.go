package main

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"code.gitea.io/gitea/modules/graceful"
)

// firstSocket is the first file that a process inherits after its streams.
const firstSocket = 3

// useSockets makes Gitea listen on the sockets that it inherited, as many as
// count says: who started it knows its ports then, and nobody can take them.
// What systemd does for this, Gitea takes for a restart and ends its parent.
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
		if err := f.Close(); err != nil { // the listener has a copy, which children do not inherit
			return err
		}
		inherited[l.Addr().String()] = l
	}
	graceful.GetListener = func(network, address string) (net.Listener, error) {
		if l, found := inherited[address]; found {
			graceful.GetManager().InformCleanup() // it counts the servers that it is to end
			return l, nil
		}
		return graceful.DefaultGetListener(network, address)
	}
	return nil
}
