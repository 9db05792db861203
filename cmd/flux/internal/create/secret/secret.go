// Package secret implements flux create secret.
package secret

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
	"github.com/fluxkit/flux/internal/secrets/credential"
)

// builder builds the Secrets of one subcommand.
type builder struct {
	word, what, example string
	flags               []creation.Flag
	// others registers flags for secret values and files. It may be nil.
	others func(*pflag.FlagSet)
	// build returns the Secret; it is discarded if c has recorded a problem.
	build func(ctx context.Context, c *creation.Creation) (*unstructured.Unstructured, error)
}

// NewCommand returns the create secret command.
func NewCommand(a *app.App, o *creation.Flags) *cobra.Command {
	cmd := command.Group("secret", "Create or update Secrets for sources, receivers and verification")
	cmd.Long = `Create or update Secrets, or export them as YAML. Encrypt exported Secrets before you
commit them. Read secret values from a file or from standard input to keep them out of
the process list and the shell history. Keys and certificates are validated before
anything is written.`
	for _, b := range builders() {
		cmd.AddCommand(newKind(a, o, b))
	}
	return cmd
}

func builders() []builder {
	return []builder{
		secretGit(), secretGitHubApp(), secretHelm(), secretNotation(), secretOCI(), secretProxy(), secretReceiver(), secretSOPS(), secretTLS(),
	}
}

func newKind(a *app.App, o *creation.Flags, b builder) *cobra.Command {
	cmd := &cobra.Command{
		Use:               b.word + " [name]",
		Short:             "Create or update a Secret " + b.what,
		Example:           strings.TrimRight(b.example, "\n"),
		ValidArgsFunction: creation.CompleteReferences(a, []string{"Secret"}),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, b, args) },
	}
	creation.Builder{Flags: b.flags, OtherFlags: b.others}.AddFlags(a, cmd)
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *creation.Flags, b builder, args []string) error {
	c := creation.New(a, cmd, o, args)
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	creation.Builder{Flags: b.flags}.Build(c) // checks the flags
	secret, err := b.build(ctx, c)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		return err
	}
	data, _ := secret.Object["data"].(map[string]any)
	if public, ok := data["identity.pub"].(string); ok {
		text, _ := base64.StdEncoding.DecodeString(public)
		a.UI.Success("public key: %s", strings.TrimSpace(string(text)))
	}
	if o.Export {
		return c.Print(withStringData(secret))
	}
	done, err := c.Apply(ctx, "secret "+c.Name, secret)
	if err != nil {
		return err
	}
	return c.Show(done.After)
}

// withStringData returns the Secret with plain values in stringData, which SOPS can
// encrypt one by one.
func withStringData(secret *unstructured.Unstructured) *unstructured.Unstructured {
	plain := secret.DeepCopy()
	data, _ := plain.Object["data"].(map[string]any)
	values := map[string]any{}
	for key, value := range data {
		text, _ := value.(string)
		decoded, _ := base64.StdEncoding.DecodeString(text) // NewSecret has encoded it
		values[key] = string(decoded)
	}
	delete(plain.Object, "data")
	plain.Object["stringData"] = values
	return plain
}

func username() creation.Flag { return creation.Text("username", "", "user name").Short("u") }

func secretHelm() builder {
	password, files := input.NewSecretFlag("password"), credentials.TLS{Ca: "ca-crt-file", Cert: "tls-crt-file", Key: "tls-key-file"}
	return builder{
		word: "helm", what: "with Helm repository credentials",
		example: `  # Read the password from standard input
  flux create secret helm charts --username=me --password-stdin < password

  # Export the Secret to encrypt it and commit it to Git
  flux create secret helm charts --username=me --password-file=./password --export > charts.yaml`,
		flags: []creation.Flag{username()},
		others: func(fs *pflag.FlagSet) {
			password.Add(fs, "p", "password", "")
			files.Add(fs)
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			files.Check(c)
			data, typ, username := files.Read(c), files.SecretType(), c.Text("username")
			if len(data) == 0 || username != "" || c.SecretGiven(password) {
				if c.Require("username", username); !c.SecretGiven(password) {
					c.Require("password", "")
				}
				typ = "kubernetes.io/basic-auth"
				data["username"], data["password"] = username, c.Secret(password)
			}
			return credentials.NewSecret(c, c.Name, typ, data), nil
		},
	}
}

func secretOCI() builder {
	password := input.NewSecretFlag("password")
	return builder{
		word: "oci", what: "with registry credentials",
		example: `  # Read a token from standard input
  echo $GITHUB_TOKEN | flux create secret oci ghcr --url=ghcr.io --username=flux --password-stdin`,
		flags:  []creation.Flag{creation.Text("url", "", "registry host with an optional path, e.g. ghcr.io").Required(), username().Required()},
		others: func(fs *pflag.FlagSet) { password.Add(fs, "p", "password or token", "") },
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			if !c.SecretGiven(password) {
				c.Require("password", "")
			}
			registry := strings.TrimPrefix(c.Text("url"), "oci://")
			host, _, _ := strings.Cut(registry, "/")
			c.Endpoint("url", host)
			if strings.Contains(registry, "://") {
				c.CheckFlag("url", errors.New("must be a registry host, e.g. ghcr.io"))
			}
			config, err := credential.DockerConfig(registry, c.Text("username"), c.Secret(password))
			return credentials.NewSecret(c, c.Name, "kubernetes.io/dockerconfigjson", map[string]string{".dockerconfigjson": config}), err
		},
	}
}

func secretProxy() builder {
	password := input.NewSecretFlag("password")
	return builder{
		word: "proxy", what: "with a proxy address",
		example: `  # Use a proxy with authentication
  flux create secret proxy corporate --address=https://proxy.example.com:8080 --username=me --password-stdin < password`,
		flags:  []creation.Flag{creation.Text("address", "", "URL of the proxy: https, http or socks5"), username()},
		others: func(fs *pflag.FlagSet) { password.Add(fs, "p", "password", "") },
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			address, username := c.Text("address"), c.Text("username")
			c.URL("address", address, "https", "http", "socks5")
			if c.SecretGiven(password) && username == "" {
				c.Require("username", "")
			}
			data := map[string]string{"address": address}
			if username != "" {
				data["username"] = username
			}
			if c.SecretGiven(password) {
				data["password"] = c.Secret(password)
			}
			return credentials.NewSecret(c, c.Name, "Opaque", data), nil
		},
	}
}

func secretTLS() builder {
	files := credentials.TLS{Ca: "ca-crt-file", Cert: "tls-crt-file", Key: "tls-key-file"}
	return builder{
		word: "tls", what: "with TLS certificates",
		example: `  # Trust the CA certificate of a registry
  flux create secret tls registry-ca --ca-crt-file=./ca.crt

  # Use a client certificate
  flux create secret tls client --tls-crt-file=./client.crt --tls-key-file=./client.key --ca-crt-file=./ca.crt`,
		others: files.Add,
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			if files.CaFile == "" && files.CertFile == "" && files.KeyFile == "" {
				c.Check(errors.New("--ca-crt-file, or --tls-crt-file and --tls-key-file, is required"))
			}
			files.Check(c)
			return credentials.NewSecret(c, c.Name, files.SecretType(), files.Read(c)), nil
		},
	}
}
