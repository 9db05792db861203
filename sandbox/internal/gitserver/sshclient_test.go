package gitserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Environment variables by which a test configures its ssh client instead of options.
const (
	sshKeyVariable        = "SANDBOX_TEST_SSH_KEY"
	sshKnownHostsVariable = "SANDBOX_TEST_SSH_KNOWN_HOSTS"
)

// sshClient implements the part of ssh that Git uses: -p PORT, -o SendEnv=…, USER@HOST and a command.
func sshClient(args []string) int {
	port, protocol := "22", ""
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-p":
			port = args[1]
		case "-o":
			if args[1] == "SendEnv=GIT_PROTOCOL" {
				protocol = os.Getenv("GIT_PROTOCOL")
			}
		}
		args = args[2:]
	}
	if len(args) != 2 {
		fmt.Fprintf(os.Stderr, "ssh client of the tests: invalid arguments %q\n", args)
		return 255
	}
	user, host, _ := strings.Cut(args[0], "@")
	err := sshRun(user, net.JoinHostPort(host, port), protocol, args[1])
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return exit.ExitStatus()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	return 0
}

func sshRun(user, address, protocol, command string) error {
	connection, err := sshDial(user, address, os.Getenv(sshKeyVariable), os.Getenv(sshKnownHostsVariable))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	session, err := connection.NewSession()
	if err != nil {
		return err
	}
	if protocol != "" {
		if err := session.Setenv("GIT_PROTOCOL", protocol); err != nil {
			return err
		}
	}
	session.Stdin, session.Stdout, session.Stderr = os.Stdin, os.Stdout, os.Stderr
	return session.Run(command)
}

func sshDial(user, address, keyFile, knownHostsFile string) (*ssh.Client, error) {
	verify, err := knownhosts.New(knownHostsFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", address, &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   verify,
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		Timeout:           bound,
	})
}
