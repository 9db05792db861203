package main

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/credential"
)

// secretBuilder makes Secrets for one use.
type secretBuilder struct {
	word, what, example string
	flags               func(*pflag.FlagSet)
	// build returns the Secret, in the end or where c has found something wrong.
	build func(ctx context.Context, c *creation) (*unstructured.Unstructured, error)
}

func newCreateSecret(a *app, o *createFlags) *cobra.Command {
	cmd := group("secret", "Create or change Secrets for sources, receivers and verification")
	cmd.Long = `Create or change Secrets, or print them with --export: encrypt those before they
are committed. Every secret value can come from a file or from standard input,
which keeps it out of the list of processes and the history of the shell. Keys
and certificates are checked before anything is written.`
	for _, b := range secretBuilders() {
		cmd.AddCommand(a.secretCommand(o, b))
	}
	return cmd
}

func secretBuilders() []secretBuilder {
	return []secretBuilder{
		secretGit(), secretGitHubApp(), secretHelm(), secretNotation(), secretOCI(), secretProxy(), secretReceiver(), secretTLS(),
	}
}

func (a *app) secretCommand(o *createFlags, b secretBuilder) *cobra.Command {
	cmd := &cobra.Command{
		Use:               b.word + " [name]",
		Short:             "Create or change a Secret " + b.what,
		Example:           strings.TrimRight(b.example, "\n"),
		ValidArgsFunction: a.completeReferences([]string{"Secret"}),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.createSecret(cmd, o, b, args) },
	}
	b.flags(cmd.Flags())
	return cmd
}

func (a *app) createSecret(cmd *cobra.Command, o *createFlags, b secretBuilder, args []string) error {
	c := a.newCreation(cmd, o, args)
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	secret, err := b.build(ctx, c)
	if err == nil {
		err = c.verdict()
	}
	if err != nil {
		return err
	}
	data, _ := secret.Object["data"].(map[string]any)
	if public, ok := data["identity.pub"].(string); ok {
		text, _ := base64.StdEncoding.DecodeString(public)
		a.ui.Success("public key: %s", strings.TrimSpace(string(text)))
	}
	if o.export {
		return c.print(legible(secret))
	}
	done, err := c.apply(ctx, "secret "+c.name, secret)
	if err != nil {
		return err
	}
	return c.show(done.After)
}

// secretObject is a Secret. Its values are encoded: a server-side apply of
// plain ones would not take back those of an earlier one.
func (c *creation) secretObject(name, typ string, values map[string]string) *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	metadata := c.metadata()
	metadata["name"] = name
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
	put(secret, "type", typ)
	return &unstructured.Unstructured{Object: secret}
}

// legible is a Secret as files have it, its values not encoded, so that SOPS
// and people see what there is.
func legible(secret *unstructured.Unstructured) *unstructured.Unstructured {
	plain := secret.DeepCopy()
	data, _ := plain.Object["data"].(map[string]any)
	values := map[string]any{}
	for key, value := range data {
		text, _ := value.(string)
		decoded, _ := base64.StdEncoding.DecodeString(text) // it was encoded here
		values[key] = string(decoded)
	}
	delete(plain.Object, "data")
	plain.Object["stringData"] = values
	return plain
}

func secretHelm() secretBuilder {
	var username string
	password, files := newSecretFlag("password"), tlsFlags{ca: "ca-crt-file", cert: "tls-crt-file", key: "tls-key-file"}
	return secretBuilder{
		word: "helm", what: "that opens a Helm repository",
		example: `  # With the password from standard input
  flux create secret helm charts --username=me --password-stdin < password

  # For a repository: print it, to be encrypted
  flux create secret helm charts --username=me --password-file=./password --export > charts.yaml`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVarP(&username, "username", "u", "", "the user name")
			password.add(fs, "p", "the password", "")
			files.add(fs)
		},
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			files.check(c)
			data, typ := files.read(c), files.secretType()
			if len(data) == 0 || username != "" || c.asked(password) {
				if c.need("username", username); !c.asked(password) {
					c.need("password", "")
				}
				typ = "kubernetes.io/basic-auth"
				data["username"], data["password"] = username, c.secret(password)
			}
			return c.secretObject(c.name, typ, data), nil
		},
	}
}

func secretOCI() secretBuilder {
	var registry, username string
	password := newSecretFlag("password")
	return secretBuilder{
		word: "oci", what: "that opens a registry",
		example: `  # With a token from standard input
  echo $GITHUB_TOKEN | flux create secret oci ghcr --url=ghcr.io --username=flux --password-stdin`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&registry, "url", "", "the host of the registry, and a path if need be")
			fs.StringVarP(&username, "username", "u", "", "the user name")
			password.add(fs, "p", "the password or token", "")
		},
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			c.need("url", registry)
			if c.need("username", username); !c.asked(password) {
				c.need("password", "")
			}
			host, _, _ := strings.Cut(strings.TrimPrefix(registry, "oci://"), "/")
			c.endpoint("url", host)
			if strings.Contains(strings.TrimPrefix(registry, "oci://"), "://") {
				c.flagged("url", errors.New("a registry is named by its host, such as ghcr.io"))
			}
			config, err := credential.DockerConfig(strings.TrimPrefix(registry, "oci://"), username, c.secret(password))
			return c.secretObject(c.name, "kubernetes.io/dockerconfigjson", map[string]string{".dockerconfigjson": config}), err
		},
	}
}

func secretProxy() secretBuilder {
	var address, username string
	password := newSecretFlag("password")
	return secretBuilder{
		word: "proxy", what: "with the address of a proxy",
		example: `  # A proxy that wants a password
  flux create secret proxy corporate --address=https://proxy.example.com:8080 --username=me --password-stdin < password`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&address, "address", "", "the address of the proxy: https or http")
			fs.StringVarP(&username, "username", "u", "", "the user name")
			password.add(fs, "p", "the password", "")
		},
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			c.address("address", address, "https", "http", "socks5")
			if c.asked(password) && username == "" {
				c.need("username", "")
			}
			data := map[string]string{"address": address}
			if username != "" {
				data["username"] = username
			}
			if c.asked(password) {
				data["password"] = c.secret(password)
			}
			return c.secretObject(c.name, "Opaque", data), nil
		},
	}
}

func secretTLS() secretBuilder {
	files := tlsFlags{ca: "ca-crt-file", cert: "tls-crt-file", key: "tls-key-file"}
	return secretBuilder{
		word: "tls", what: "with certificates",
		example: `  # The authority that a registry's certificate comes from
  flux create secret tls registry-ca --ca-crt-file=./ca.crt

  # A client's certificate and key
  flux create secret tls client --tls-crt-file=./client.crt --tls-key-file=./client.key --ca-crt-file=./ca.crt`,
		flags: files.add,
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			if files.caFile == "" && files.certFile == "" && files.keyFile == "" {
				c.wrong(errors.New("--ca-crt-file, or --tls-crt-file and --tls-key-file, is required"))
			}
			files.check(c)
			return c.secretObject(c.name, files.secretType(), files.read(c)), nil
		},
	}
}
