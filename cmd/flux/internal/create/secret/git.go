package secret

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
	"github.com/fluxkit/flux/internal/secrets/credential"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

func secretGit() builder {
	auth, bearer := credentials.NewGit("ca-crt-file"), input.NewSecretFlag("bearer-token")
	return builder{
		word: "git", what: "with Git credentials",
		example: `  # Generate an SSH deploy key and print its public key
  flux create secret git app --url=ssh://git@github.com/org/app

  # Use an existing SSH key with its passphrase in a file
  flux create secret git app --url=ssh://git@github.com/org/app --private-key-file=./id_ed25519 --password-file=./passphrase

  # Use HTTPS with a token from standard input
  flux create secret git app --url=https://github.com/org/app --username=git --password-stdin < token

  # Export the Secret to encrypt it and commit it to Git
  flux create secret git app --url=https://github.com/org/app --bearer-token-stdin --export < token`,
		flags: []creation.Flag{creation.Text("url", "", "URL of the repository: ssh, https or http")},
		others: func(fs *pflag.FlagSet) {
			bearer.Add(fs, "", "bearer token for HTTPS", "")
			auth.Add(fs)
		},
		build: func(ctx context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			u := c.URL("url", c.Text("url"), "ssh", "http", "https")
			auth.Check(c, u)
			c.Exclusive(append(bearer.FlagNames(), "username")...)
			if u != nil && u.Scheme == "ssh" && c.SecretGiven(bearer) {
				c.Check(errors.New("--bearer-token requires an https:// URL"))
			}
			if u != nil && u.Scheme != "ssh" && auth.Username == "" && !c.SecretGiven(bearer) && auth.TLS.CaFile == "" {
				c.Check(errors.New("--username and --password, or --bearer-token, are required with an https:// URL"))
			}
			if err := c.Err(); err != nil {
				return nil, err
			}
			if u.Scheme == "ssh" {
				data, err := auth.SSHData(ctx, c, u, sshkey.Pair{})
				return credentials.NewSecret(c, c.Name, "", data), err
			}
			return credentials.NewSecret(c, c.Name, "", auth.HTTPData(c, bearer)), nil
		},
	}
}

func secretGitHubApp() builder {
	return builder{
		word: "githubapp", what: "with the credentials of a GitHub App",
		example: `  # Select the installation by its ID
  flux create secret githubapp app --app-id=12345 --app-installation-id=67890 --app-private-key=./app.pem

  # Select the installation of an organization on GitHub Enterprise Server
  flux create secret githubapp app --app-id=12345 --app-installation-owner=org --app-private-key=./app.pem --app-base-url=https://github.example.com/api/v3`,
		flags: []creation.Flag{
			creation.Text("app-id", "", "ID of the GitHub App").Required().Checked(checkID),
			creation.Text("app-private-key", "", "path to the private key of the GitHub App, '-' for standard input").Required(),
			creation.Text("app-installation-id", "", "ID of the installation").Checked(checkID),
			creation.Text("app-installation-owner", "", "user or organization of the installation, instead of its ID"),
			creation.Text("app-base-url", "", "URL of the GitHub API (default: the API of github.com)"),
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			if c.Text("app-installation-id")+c.Text("app-installation-owner") == "" {
				c.Check(errors.New("--app-installation-id or --app-installation-owner is required"))
			}
			c.Exclusive("app-installation-id", "app-installation-owner")
			if base := c.Text("app-base-url"); base != "" {
				c.URL("app-base-url", base, "https", "http")
			}
			before, file := len(c.Problems), c.Text("app-private-key")
			key := c.File("app-private-key", file)
			if file != "" && len(c.Problems) == before {
				c.CheckFlag("app-private-key", credential.RSAKey(key))
			}
			data := map[string]string{"githubAppPrivateKey": string(key)}
			for key, flag := range map[string]string{
				"githubAppID": "app-id", "githubAppInstallationID": "app-installation-id", "githubAppInstallationOwner": "app-installation-owner", "githubAppBaseURL": "app-base-url",
			} {
				if value := c.Text(flag); value != "" {
					data[key] = value
				}
			}
			return credentials.NewSecret(c, c.Name, "Opaque", data), nil
		},
	}
}

// checkID validates a GitHub ID.
func checkID(c *creation.Creation, flag, value string) {
	if n, err := strconv.ParseInt(value, 10, 64); value != "" && (err != nil || n <= 0) {
		c.CheckFlag(flag, fmt.Errorf("invalid ID %q: must be a positive integer", value))
	}
}

func secretNotation() builder {
	return builder{
		word: "notation", what: "with a Notation trust policy",
		example: `  # Use a trust policy and the CA certificate of the signers
  flux create secret notation trust --trust-policy-file=./trustpolicy.json --ca-cert-file=./ca.crt`,
		flags: []creation.Flag{
			creation.Text("trust-policy-file", "", "path to the trust policy, '-' for standard input").Required(),
			creation.List("ca-cert-file", "", "paths to the CA certificates, named *.crt or *.pem").Required(),
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			data := map[string]string{}
			for _, file := range c.List("ca-cert-file") {
				name := filepath.Base(file)
				if ext := filepath.Ext(name); ext != ".crt" && ext != ".pem" {
					c.CheckFlag("ca-cert-file", fmt.Errorf("%q must have the extension .crt or .pem", file))
					continue
				}
				if _, twice := data[name]; twice {
					c.CheckFlag("ca-cert-file", fmt.Errorf("two files are named %q: file names must be unique", name))
				}
				before := len(c.Problems)
				if text := c.File("ca-cert-file", file); len(c.Problems) == before {
					c.CheckFlag("ca-cert-file", credential.Certificates(text))
					data[name] = string(text)
				}
			}
			before, policy := len(c.Problems), c.Text("trust-policy-file")
			if text := c.File("trust-policy-file", policy); policy != "" && len(c.Problems) == before {
				c.CheckFlag("trust-policy-file", credential.TrustPolicy(text))
				data["trustpolicy.json"] = string(text)
			}
			return credentials.NewSecret(c, c.Name, "", data), nil
		},
	}
}

// webhookAnnotation is the annotation with the webhook URL of a Receiver.
const webhookAnnotation = "notification.toolkit.fluxcd.io/webhook"

func secretReceiver() builder {
	token := input.NewSecretFlag("token")
	return builder{
		word: "receiver", what: "with the webhook token of a Receiver",
		example: `  # Generate a token; an annotation contains the webhook URL of the Receiver with the same name
  flux create secret receiver github-receiver --type=github --hostname=flux.example.com

  # Use an existing token
  flux create secret receiver github-receiver --type=github --hostname=flux.example.com --token-file=./token`,
		flags: []creation.Flag{
			creation.Choice("type", "", "type of the Receiver: "+strings.Join(creation.ReceiverTypes, ", "), creation.ReceiverTypes...).Required(),
			creation.Text("hostname", "", "hostname of the webhook, e.g. flux.example.com").Required().
				Checked(func(c *creation.Creation, flag, value string) { c.Endpoint(flag, value) }),
			creation.Text("email-claim", "", "e-mail claim of the Pub/Sub token (only with --type=gcr)"),
			creation.Text("audience-claim", "", "audience claim of the Pub/Sub token (only with --type=gcr, default the webhook URL)"),
		},
		others: func(fs *pflag.FlagSet) { token.Add(fs, "", "webhook token", " (default: a generated token)") },
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			typ, email := c.Text("type"), c.Text("email-claim")
			checkClaims(c, typ, email)
			value := c.Secret(token)
			if !c.SecretGiven(token) {
				random := make([]byte, 32)
				if _, err := rand.Read(random); err != nil {
					return nil, fmt.Errorf("generating a token: %w", err)
				}
				value = hex.EncodeToString(random)
			}
			webhook := (&url.URL{Scheme: "https", Host: c.Text("hostname"), Path: credential.WebhookPath(value, c.Name, c.Namespace)}).String()
			data := map[string]string{"token": value}
			if typ == "gcr" {
				data["email"], data["audience"] = email, cmp.Or(c.Text("audience-claim"), webhook)
			}
			secret := credentials.NewSecret(c, c.Name, "", data)
			secret.SetAnnotations(map[string]string{webhookAnnotation: webhook})
			if len(c.Problems) == 0 {
				// The path is a hash of the token, and of the Receiver's name and namespace, which
				// may differ.
				c.App.UI.Success("webhook address of Receiver %s/%s: %s", c.Namespace, c.Name, webhook)
			}
			return secret, nil
		},
	}
}

// checkClaims checks the claims of a Receiver of type gcr.
func checkClaims(c *creation.Creation, typ, email string) {
	if typ != "gcr" {
		if given := c.Given("email-claim", "audience-claim"); len(given) > 0 {
			c.Check(fmt.Errorf("%s requires --type=gcr", strings.Join(given, ", ")))
		}
		return
	}
	c.Require("email-claim", email)
	if _, err := mail.ParseAddress(email); email != "" && err != nil {
		c.CheckFlag("email-claim", fmt.Errorf("invalid e-mail address %q", email))
	}
}
