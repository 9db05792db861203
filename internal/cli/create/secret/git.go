package secret

import (
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

	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/cli/create/credentials"
	"github.com/fluxkit/flux/internal/cli/validate"
	"github.com/fluxkit/flux/internal/credential"
	"github.com/fluxkit/flux/internal/sshkey"
)

func secretGit() builder {
	var address string
	auth, bearer := credentials.NewGit("ca-crt-file"), validate.NewSecretFlag("bearer-token")
	return builder{
		word: "git", what: "that opens a Git repository",
		example: `  # Over SSH: makes a key and shows it, to be given access
  flux create secret git app --url=ssh://git@github.com/org/app

  # Over SSH with a key that has access, its passphrase in a file
  flux create secret git app --url=ssh://git@github.com/org/app --private-key-file=./id_ed25519 --password-file=./passphrase

  # Over HTTPS with a token from standard input
  flux create secret git app --url=https://github.com/org/app --username=git --password-stdin < token

  # For a repository: print it, to be encrypted
  flux create secret git app --url=https://github.com/org/app --bearer-token-stdin --export < token`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&address, "url", "", "the address of the repository: ssh, https or http")
			bearer.Add(fs, "", "the token to send as a bearer token", "")
			auth.Add(fs)
		},
		build: func(ctx context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			u := c.URL("url", address, "ssh", "http", "https")
			auth.Check(c, u)
			c.Exclusive("one of them opens the repository", append(bearer.Names(), "username")...)
			if u != nil && u.Scheme == "ssh" && c.Asked(bearer) {
				c.Check(errors.New("--bearer-token is for https addresses"))
			}
			if u != nil && u.Scheme != "ssh" && auth.Username == "" && !c.Asked(bearer) && auth.TLS.CaFile == "" {
				c.Check(errors.New("--username and --password, or --bearer-token, are required for an https address"))
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
	var id, installation, owner, keyFile, base string
	return builder{
		word: "githubapp", what: "by which a GitHub App opens repositories",
		example: `  # The installation that is named by its number
  flux create secret githubapp app --app-id=12345 --app-installation-id=67890 --app-private-key=./app.pem

  # The installation of an organisation, on a server of your own
  flux create secret githubapp app --app-id=12345 --app-installation-owner=org --app-private-key=./app.pem --app-base-url=https://github.example.com/api/v3`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&id, "app-id", "", "the number of the App")
			fs.StringVar(&installation, "app-installation-id", "", "the number of its installation")
			fs.StringVar(&owner, "app-installation-owner", "", "the user or organisation that it is installed for, instead of the number")
			fs.StringVar(&keyFile, "app-private-key", "", "a file with the App's private key; '-' is standard input")
			fs.StringVar(&base, "app-base-url", "", "the address of the API, unless it is that of github.com")
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			c.Require("app-id", id)
			c.Require("app-private-key", keyFile)
			if installation == "" && owner == "" {
				c.Check(errors.New("--app-installation-id or --app-installation-owner is required"))
			}
			c.Exclusive("one of them names the installation", "app-installation-id", "app-installation-owner")
			number(c, "app-id", id)
			number(c, "app-installation-id", installation)
			if base != "" {
				c.URL("app-base-url", base, "https", "http")
			}
			before := len(c.Problems)
			if key := c.File("app-private-key", keyFile); keyFile != "" && len(c.Problems) == before {
				c.CheckFlag("app-private-key", credential.RSAKey(key))
				keyFile = string(key)
			}
			data := map[string]string{"githubAppID": id, "githubAppPrivateKey": keyFile}
			for key, value := range map[string]string{
				"githubAppInstallationID": installation, "githubAppInstallationOwner": owner, "githubAppBaseURL": base,
			} {
				if value != "" {
					data[key] = value
				}
			}
			return credentials.NewSecret(c, c.Name, "Opaque", data), nil
		},
	}
}

// number checks a number of GitHub.
func number(c *creation.Creation, flag, value string) {
	if n, err := strconv.ParseInt(value, 10, 64); value != "" && (err != nil || n <= 0) {
		c.CheckFlag(flag, fmt.Errorf("%q is no number", value))
	}
}

func secretNotation() builder {
	var files []string
	var policy string
	return builder{
		word: "notation", what: "that artifacts signed with Notation are verified by",
		example: `  # The policy, and the authority that the signatures come from
  flux create secret notation trust --trust-policy-file=./trustpolicy.json --ca-cert-file=./ca.crt`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringSliceVar(&files, "ca-cert-file", nil, "files with the certificates to trust, named *.crt or *.pem")
			fs.StringVar(&policy, "trust-policy-file", "", "a file with the trust policy; '-' is standard input")
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			c.Require("trust-policy-file", policy)
			c.Require("ca-cert-file", strings.Join(files, ","))
			data := map[string]string{}
			for _, file := range files {
				name := filepath.Base(file)
				if ext := filepath.Ext(name); ext != ".crt" && ext != ".pem" {
					c.CheckFlag("ca-cert-file", fmt.Errorf("%q has to end in .crt or .pem", file))
					continue
				}
				if _, twice := data[name]; twice {
					c.CheckFlag("ca-cert-file", fmt.Errorf("two files are named %q, and a Secret has room for one", name))
				}
				before := len(c.Problems)
				if text := c.File("ca-cert-file", file); len(c.Problems) == before {
					c.CheckFlag("ca-cert-file", credential.Certificates(text))
					data[name] = string(text)
				}
			}
			before := len(c.Problems)
			if text := c.File("trust-policy-file", policy); policy != "" && len(c.Problems) == before {
				c.CheckFlag("trust-policy-file", credential.TrustPolicy(text))
				data["trustpolicy.json"] = string(text)
			}
			return credentials.NewSecret(c, c.Name, "", data), nil
		},
	}
}

// webhookAnnotation tells people the address to give to who calls a Receiver.
const webhookAnnotation = "notification.toolkit.fluxcd.io/webhook"

func secretReceiver() builder {
	var typ, hostname, email, audience string
	token := validate.NewSecretFlag("token")
	return builder{
		word: "receiver", what: "with the token of a Receiver",
		example: `  # A new token; the Secret's annotation says the webhook's address
  flux create secret receiver github-receiver --type=github --hostname=flux.example.com

  # A token that exists already
  flux create secret receiver github-receiver --type=github --hostname=flux.example.com --token-file=./token`,
		flags: func(fs *pflag.FlagSet) {
			fs.Var(command.Choice{Value: &typ, Allowed: creation.ReceiverTypes}, "type", "who calls: "+strings.Join(creation.ReceiverTypes, ", "))
			token.Add(fs, "", "the token", ", made unless given")
			fs.StringVar(&hostname, "hostname", "", "the host under which the webhook is reached, such as flux.example.com")
			fs.StringVar(&email, "email-claim", "", "for gcr: the service account that calls")
			fs.StringVar(&audience, "audience-claim", "", "for gcr: whom its tokens are for; the webhook's address unless given")
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			c.Require("type", typ)
			c.Require("hostname", hostname)
			c.Endpoint("hostname", hostname)
			claims(c, typ, email)
			value := c.Secret(token)
			if !c.Asked(token) {
				made := make([]byte, 32)
				if _, err := rand.Read(made); err != nil {
					return nil, fmt.Errorf("making a token: %w", err)
				}
				value = hex.EncodeToString(made)
			}
			webhook := (&url.URL{Scheme: "https", Host: hostname, Path: credential.WebhookPath(value, c.Name, c.Namespace)}).String()
			data := map[string]string{"token": value}
			if typ == "gcr" {
				if audience == "" {
					audience = webhook
				}
				data["email"], data["audience"] = email, audience
			}
			secret := credentials.NewSecret(c, c.Name, "", data)
			secret.SetAnnotations(map[string]string{webhookAnnotation: webhook})
			if len(c.Problems) == 0 {
				c.App.UI.Success("webhook address: %s", webhook)
			}
			return secret, nil
		},
	}
}

// claims checks who may call a Receiver of Google's registry.
func claims(c *creation.Creation, typ, email string) {
	if typ != "gcr" {
		if given := c.Given("email-claim", "audience-claim"); len(given) > 0 {
			c.Check(fmt.Errorf("%s is for --type=gcr", strings.Join(given, ", ")))
		}
		return
	}
	c.Require("email-claim", email)
	if _, err := mail.ParseAddress(email); email != "" && err != nil {
		c.CheckFlag("email-claim", fmt.Errorf("%q is no e-mail address", email))
	}
}
