package loopback

import (
	"fmt"
	"net"
	"testing"
)

func TestListen(t *testing.T) {
	t.Parallel()
	tests := []struct{ address, want string }{
		{"127.0.0.1:0", "<nil>"},
		{"localhost:0", "<nil>"},
		{"0.0.0.0:0", `listen address "0.0.0.0:0" is reachable from other machines: use 127.0.0.1, [::1] or localhost`},
		{":0", `listen address ":0" has no host and would listen on all interfaces: set the host to 127.0.0.1, [::1] or localhost`},
		{"8080", `reading listen address "8080": address 8080: missing port in address`},
	}
	for _, test := range tests {
		t.Run(test.address, func(t *testing.T) {
			t.Parallel()
			listener, err := Listen(t.Context(), test.address)
			if got := fmt.Sprint(err); got != test.want {
				t.Fatalf("Listen: %s\nwant: %s", got, test.want)
			}
			if err != nil {
				return
			}
			defer func() { _ = listener.Close() }()
			if address := listener.Addr().(*net.TCPAddr); !address.IP.IsLoopback() || address.Port == 0 {
				t.Errorf("listens on %s", address)
			}
		})
	}
}

func TestListenOnATakenPort(t *testing.T) {
	t.Parallel()
	first, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	address := first.Addr().String()
	_, err = Listen(t.Context(), address)
	want := fmt.Sprintf("listening on %s: listen tcp %s: bind: address already in use", address, address)
	if fmt.Sprint(err) != want {
		t.Errorf("Listen: %v\nwant: %s", err, want)
	}
}
