package gitcommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
)

func (g command) file() credentials.File { return credentials.In(g.root()) }

func (g command) credentials() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credentials",
		Short: "Set or clear passwords and tokens",
		Long: `Configure who may clone and push over HTTP and HTTPS. When a password, a token
or an SSH key is configured, the server requires credentials for every protocol.`,
		Example: `  # Require a password
  printf %s "$PASSWORD" | flux-sandbox git credentials set --username ada --password-stdin`,
	}
	cmd.AddCommand(g.credentialsSet(), g.credentialsClear())
	return cmd
}

func (g command) credentialsSet() *cobra.Command {
	var username string
	var passwordStdin, tokenStdin, readOnly bool
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set a user's password, or the bearer token",
		Long: `Add a user, replace the password of a user, or set the bearer token. There is
one token for read-write and one for read-only access. The secret is read from
standard input, so that it does not appear in process lists, and only its digest
is stored.`,
		Example: `  # Add a user who may push
  printf %s "$PASSWORD" | flux-sandbox git credentials set --username ada --password-stdin

  # Set a token with read-only access
  printf %s "$TOKEN" | flux-sandbox git credentials set --bearer-token-stdin --read-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if passwordStdin != (username != "") {
				return errors.New("--username and --password-stdin must be used together, or --bearer-token-stdin alone")
			}
			secret, err := readAll(cmd.Context(), cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("reading the secret from standard input: %w", err)
			}
			value := strings.TrimRight(string(secret), "\r\n")
			if tokenStdin {
				if err := g.file().SetToken(value, readOnly); err != nil {
					return err
				}
				say(cmd, "bearer token set")
				return nil
			}
			if err := g.file().SetPassword(username, value, readOnly); err != nil {
				return err
			}
			say(cmd, "password of %s set", username)
			return nil
		},
	}
	cmd.Flags().StringVar(&username, "username", "", "name of the user to add or change")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the user's password from standard input")
	cmd.Flags().BoolVar(&tokenStdin, "bearer-token-stdin", false, "read the bearer token from standard input")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "allow clones but not pushes")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "bearer-token-stdin")
	cmd.MarkFlagsMutuallyExclusive("username", "bearer-token-stdin")
	cmd.MarkFlagsOneRequired("password-stdin", "bearer-token-stdin")
	return cmd
}

func (g command) credentialsClear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Remove all passwords and tokens",
		Long:  "Remove all passwords and tokens. SSH keys are kept; without keys, the server requires no credentials.",
		Example: `  # Remove all credentials
  flux-sandbox git credentials clear
  flux-sandbox git keys remove --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.file().Clear(); err != nil {
				return err
			}
			return g.printState(cmd, "passwords and tokens cleared")
		},
	}
}

// printState prints the change and the credentials that the server now requires, because one kind of credentials applies to
// all protocols.
func (g command) printState(cmd *cobra.Command, done string) error {
	set, err := g.file().Load()
	if err != nil {
		return err
	}
	state := "the server still requires credentials"
	switch {
	case set.Open():
		state = "the server requires no credentials"
	case len(set.Users)+len(set.Tokens) == 0:
		state = "the server accepts SSH keys only, not HTTP (allow HTTP with flux-sandbox git keys remove --all)"
	}
	say(cmd, "%s; %s", done, state)
	return nil
}

func (g command) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Manage the authorized SSH keys",
		Long: `Configure who may clone and push over SSH. When a password, a token or an SSH
key is configured, the server requires credentials for every protocol.`,
		Example: `  # Authorize your own key
  flux-sandbox git keys add ~/.ssh/id_ed25519.pub`,
	}
	cmd.AddCommand(g.keysAdd(), g.keysList(), g.keysRemove())
	return cmd
}

func (g command) keysAdd() *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "add FILE",
		Short: "Authorize the public keys of a file",
		Long: `Authorize all public keys in a file in the authorized_keys format, or on
standard input (-). Adding an authorized key again changes its access.`,
		Example: `  # Authorize a deploy key with read-only access
  flux-sandbox git keys add identity.pub --read-only`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, comments, err := readKeys(cmd, args[0])
			if err != nil {
				return err
			}
			for i, public := range keys {
				if err := g.file().AddKey(public, comments[i], readOnly); err != nil {
					return err
				}
				say(cmd, "key %s authorized", ssh.FingerprintSHA256(public))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "allow clones but not pushes")
	return cmd
}

func (g command) keysList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the authorized keys",
		Long:  "Print the fingerprint, type, access and comment of each authorized SSH key.",
		Example: `  # List all keys
  flux-sandbox git keys list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			set, err := g.file().Load()
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(cmd, set.ListKeys())
			}
			rows := [][]string{{"FINGERPRINT", "TYPE", "ACCESS", "COMMENT"}}
			for _, k := range set.ListKeys() {
				rows = append(rows, []string{k.Fingerprint, k.Type, k.Access, k.Comment})
			}
			return printTable(cmd, rows)
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func (g command) keysRemove() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "remove FINGERPRINT|FILE...",
		Short: "Remove authorized keys",
		Long:  "Remove SSH keys by fingerprint or by the file of the public key.",
		Example: `  # Remove a key by its file
  flux-sandbox git keys remove identity.pub

  # Remove all keys
  flux-sandbox git keys remove --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("no keys given: specify fingerprints or public key files, or only --all")
			}
			fingerprints, err := g.fingerprints(cmd, args)
			if err != nil {
				return err
			}
			var missing []error
			for _, fingerprint := range fingerprints {
				found, err := g.file().RemoveKey(fingerprint)
				if err != nil {
					return err
				}
				if !found {
					missing = append(missing, fmt.Errorf("key %s is not authorized: see flux-sandbox git keys list", fingerprint))
					continue
				}
				say(cmd, "key %s removed", fingerprint)
			}
			if len(missing) > 0 {
				return errors.Join(missing...)
			}
			return g.printState(cmd, "done")
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every key")
	return cmd
}

// fingerprints returns the fingerprints of the arguments, or of all authorized keys when there are none.
func (g command) fingerprints(cmd *cobra.Command, args []string) ([]string, error) {
	var fingerprints []string
	if len(args) == 0 {
		set, err := g.file().Load()
		if err != nil {
			return nil, err
		}
		for _, k := range set.ListKeys() {
			fingerprints = append(fingerprints, k.Fingerprint)
		}
		return fingerprints, nil
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "SHA256:") {
			fingerprints = append(fingerprints, arg)
			continue
		}
		keys, _, err := readKeys(cmd, arg)
		if err != nil {
			return nil, err
		}
		for _, public := range keys {
			fingerprints = append(fingerprints, ssh.FingerprintSHA256(public))
		}
	}
	return fingerprints, nil
}

func readKeys(cmd *cobra.Command, file string) ([]ssh.PublicKey, []string, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = readAll(cmd.Context(), cmd.InOrStdin())
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading public keys: %w", err)
	}
	keys, comments, err := credentials.ParseKeys(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading public keys from %s: %w", file, err)
	}
	return keys, comments, nil
}

// readAll reads a small input until ctx is canceled. Its goroutine cannot be interrupted; the process exits soon after.
func readAll(ctx context.Context, input io.Reader) ([]byte, error) {
	const bound = 64 << 10
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(input, bound+1))
		if err == nil && len(data) > bound {
			err = errors.New("larger than 64 KiB")
		}
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
