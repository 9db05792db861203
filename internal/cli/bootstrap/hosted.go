package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/fold"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

// hostedFlags are the flags of the hosts with an API. Which of them a command
// has, its row says.
type hostedFlags struct {
	*flags
	owner, repository string
	path              repositoryPath
	interval          time.Duration
	hostname          string
	allowHTTP         bool
	tokenFrom         string
	personal          bool
	private           bool
	visibility        string
	description       string
	teams             []string
	reconcile         bool
	readWriteKey      bool

	// username goes with the token over HTTP where the host wants one.
	username string
	// deployToken has the host make a token for the cluster.
	deployToken bool
}

// newHosted makes the command of a row.
func newHosted(a *app.App, common *flags, row hostRow) *cobra.Command {
	o := &hostedFlags{flags: common}
	cmd := &cobra.Command{
		Use:     row.word,
		Short:   fmt.Sprintf("Put Flux on a cluster out of a repository on %s", row.name),
		Long:    row.long(),
		Example: row.example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runHosted(a, cmd, o, row) },
	}
	o.add(cmd.Flags(), row)
	return cmd
}

// long is the help of a row's command.
func (row hostRow) long() string {
	return paragraph(fmt.Sprintf(`Make a repository on %s where there is none, commit
the manifests of Flux to it, install them on the cluster, and let the cluster
follow the repository from then on. Run it again to upgrade, to finish what was
interrupted, or to change a flag. Nothing is changed before the token has been
found good enough, the repository within reach and the cluster able to run Flux.`, row.name)) + "\n\n" +
		paragraph(fmt.Sprintf(`The token comes from %s, from standard input or from the programs
gh and glab (--token-from), else it is asked for. %s`, row.tokenEnv, row.scopes))
}

// paragraph breaks a text into lines that a terminal of 80 columns shows.
func paragraph(text string) string { return fold.Line(strings.Join(strings.Fields(text), " "), 0, 79) }

func (o *hostedFlags) add(fs *pflag.FlagSet, row hostRow) {
	fs.StringVar(&o.owner, "owner", "", row.owner)
	fs.StringVar(&o.repository, "repository", "", "the name of the repository")
	fs.Var(&o.path, "path", "the folder of this cluster in the repository; the root unless given")
	fs.DurationVar(&o.interval, "interval", time.Minute, "how often the cluster looks for new commits")
	fs.StringVar(&o.hostname, "hostname", row.hostname, "the host, and port, of "+row.name)
	fs.BoolVar(&o.allowHTTP, "allow-insecure-http", false, "allow a --hostname that begins with http://, which shows the token to everybody on the way")
	fs.Var(command.Choice{Value: &o.tokenFrom, Allowed: tokenSources}, "token-from", "where the token is: "+strings.Join(tokenSources, ", "))
	fs.BoolVar(&o.personal, "personal", false, "the owner is a user")
	fs.BoolVar(&o.private, "private", true, "make the repository private")
	if len(row.visibilities) > 0 {
		o.visibility = row.visibility
		fs.Var(command.Choice{Value: &o.visibility, Allowed: row.visibilities}, "visibility", "who sees the repository: "+strings.Join(row.visibilities, ", "))
	}
	fs.StringVar(&o.description, "description", "", "the description of the repository")
	fs.StringSliceVar(&o.teams, row.teams.flag, nil, row.teams.usage())
	fs.BoolVar(&o.reconcile, "reconcile", false, "bring a repository that exists in line with these flags")
	fs.BoolVar(&o.readWriteKey, "read-write-key", false, "let the cluster's key write to the repository")
	if row.extra != nil {
		row.extra(o, fs)
	}
}

// runHosted checks all that can be checked here before it asks for a token.
func runHosted(a *app.App, cmd *cobra.Command, o *hostedFlags, row hostRow) error {
	hosted, err := o.hosted(cmd, row)
	if err != nil {
		return err
	}
	source := o.tokenFrom
	if o.RegistryCreds == "-" && (source == "stdin" || source == "" && a.Env(row.tokenEnv) == "") {
		return clierr.WithHint("set "+row.tokenEnv, "the token and --registry-creds cannot both be read from standard input")
	}
	if hosted.CABundle, err = o.certificates(); err != nil {
		return err
	}
	privateKey, err := readFile("private-key-file", o.privateKeyFile)
	if err != nil {
		return err
	}
	passphrase, err := keyPassphrase(cmd.Context(), a, privateKey)
	if err != nil {
		return err
	}
	plan, err := o.plan(a, cmd, privateKey, passphrase)
	if err != nil {
		return err
	}
	o.warnIdle(a, cmd, row)
	if hosted.Token, err = hostToken(cmd.Context(), a, source, row.tokenEnv, hosted.Hostname); err != nil {
		return err
	}
	caller := githost.Caller{UserAgent: "flux/" + a.Build.Version, Now: a.Now, Waiting: a.UI.Waiting}
	client, err := caller.Client(hosted)
	if err != nil {
		return err
	}
	plan.Path, plan.Sync.Interval, plan.DeployToken = string(o.path), o.interval, o.deployToken
	if plan.Host, err = row.host(hosted, client, o); err != nil {
		return err
	}
	return run(cmd.Context(), a, plan, o.mode)
}

// wellNamed tells whether a text is a name as hosts take them: letters and digits
// of any language, and some of . - _ between them.
func wellNamed(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("._-", r)
	})
}

// ownerNamed is wellNamed for owners, which may begin with a tilde and begin with
// neither a dot nor a dash.
func ownerNamed(text string) bool {
	text = strings.TrimPrefix(text, "~")
	return wellNamed(text) && text[0] != '.' && text[0] != '-'
}

// hosted returns the repository that the flags describe.
func (o *hostedFlags) hosted(cmd *cobra.Command, row hostRow) (githost.Hosted, error) {
	var none githost.Hosted
	switch {
	case o.owner == "":
		return none, clierr.WithHint("name it with --owner", "no owner is named: %s", row.owner)
	case o.repository == "":
		return none, clierr.WithHint("name it with --repository, as in --repository=fleet", "no repository is named")
	case !wellNamed(o.repository) || strings.Trim(o.repository, ".") == "":
		return none, clierr.WithHint("give the name alone, as in --repository=fleet, and its owner with --owner", "invalid repository name %q", o.repository)
	case o.tokenAuth && o.deployToken:
		return none, clierr.WithHint("leave one of them out: with --deploy-token-auth the cluster cannot write to the repository", "--token-auth and --deploy-token-auth contradict each other")
	case strings.HasSuffix(o.repository, ".git"):
		return none, clierr.WithHint("write --repository="+strings.TrimSuffix(o.repository, ".git"), "the name of a repository does not end in .git")
	}
	owner := strings.Trim(o.owner, "/")
	parts := strings.Split(owner, "/")
	if row.spaced {
		parts = strings.Split(strings.ReplaceAll(owner, " ", "-"), "/")
	}
	if len(parts) > 1 && !row.nested || slices.ContainsFunc(parts, func(p string) bool { return !ownerNamed(p) }) {
		return none, clierr.WithHint("as it stands in the addresses of "+row.name, "invalid owner %q", o.owner)
	}
	scheme, hostname, below, err := parseHostname(o.hostname, o.allowHTTP, row.below)
	if err != nil {
		return none, err
	}
	visibility, err := o.visible(cmd)
	if err != nil {
		return none, err
	}
	var teams []githost.Team
	if !o.personal {
		if teams, err = row.teams.parse(o.teams); err != nil {
			return none, err
		}
	}
	return githost.Hosted{
		Hostname: hostname, Scheme: scheme, BasePath: below, Owner: owner, Name: o.repository, Personal: o.personal,
		Visibility: visibility, Description: o.description, Branch: o.branch, Teams: teams, Reconcile: o.reconcile,
		TokenAuth: o.tokenAuth, ReadWriteKey: o.readWriteKey, SSHHostname: o.sshHostname,
	}, nil
}

// visible is who sees the repository: --visibility, or what --private says.
func (o *hostedFlags) visible(cmd *cobra.Command) (string, error) {
	byPrivate := "public"
	if o.private {
		byPrivate = "private"
	}
	set := cmd.Flags().Changed("visibility")
	if set && cmd.Flags().Changed("private") && o.visibility != byPrivate {
		return "", fmt.Errorf("--private=%t contradicts --visibility=%s: leave one of them out", o.private, o.visibility)
	}
	if set {
		return o.visibility, nil
	}
	return byPrivate, nil
}

// parseHostname reads --hostname: a host, and port, after a scheme or
// not, and where hosts may live below a path, that path.
func parseHostname(s string, allowHTTP, mayBeBelow bool) (scheme, host, below string, err error) {
	const way = "give the host alone, as in --hostname=git.example.com"
	address := s
	if !strings.Contains(s, "://") {
		address = "https://" + s
	}
	u, err := url.Parse(address)
	switch {
	case s == "":
		return "", "", "", clierr.WithHint(way, "no host is named")
	case err != nil || u.Hostname() == "" || strings.ContainsAny(u.Host, " _"):
		return "", "", "", clierr.WithHint(way, "--hostname is not a host")
	case u.User != nil:
		return "", "", "", clierr.WithHint(way, "--hostname has a user name or password in it")
	case strings.Trim(u.Path, "/") != "" && !mayBeBelow || u.RawQuery != "" || u.Fragment != "":
		return "", "", "", clierr.WithHint(way, "the host %q in --hostname is followed by a path", u.Host)
	case u.Scheme == "http" && !allowHTTP:
		return "", "", "", clierr.WithHint("leave http:// out, or allow it with --allow-insecure-http", "http shows the token to everybody on the way")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", "", clierr.WithHint(way, "unknown scheme %q in --hostname", u.Scheme)
	}
	return u.Scheme, strings.ToLower(u.Host), strings.Trim(u.Path, "/"), nil
}

// warnIdle names the flags that have no effect beside the others.
func (o *hostedFlags) warnIdle(a *app.App, cmd *cobra.Command, row hostRow) {
	byToken := o.tokenAuth || o.deployToken
	algorithm := o.key.Algorithm
	if f := cmd.Flags().Lookup("private"); f.Hidden && f.Changed {
		a.UI.Warning("--private is deprecated: use --visibility")
	}
	warnIdle(a, cmd, []idleFlags{
		{byToken, "the cluster uses the token and no SSH key", []string{"ssh-hostname", "ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits", "ssh-hostkey-algos", "ssh-known-hosts-file", "read-write-key"}},
		{o.tokenAuth && !o.deployToken, "with --token-auth the cluster uses your token, which is yours to replace", []string{"rotate-key"}},
		{!byToken && o.privateKeyFile != "", "the cluster gets the key of --private-key-file", []string{"rotate-key"}},
		{byToken && !o.sign.reuse, "the cluster uses the token and no SSH key", []string{"private-key-file"}},
		{!byToken && o.privateKeyFile != "", "no key is made with --private-key-file", []string{"ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits"}},
		{!byToken && algorithm != "rsa", "the generated key is not an RSA key", []string{"ssh-rsa-bits"}},
		{!byToken && algorithm != "ecdsa", "the key to make is no ECDSA key", []string{"ssh-ecdsa-curve"}},
		{o.personal, "a user's repository has no " + row.teams.flag + "s", []string{row.teams.flag}},
	})
}

// keyPassphrase returns what unlocks the key of --private-key-file, "" where
// it is not locked.
func keyPassphrase(ctx context.Context, a *app.App, privateKey []byte) (string, error) {
	if privateKey == nil || !sshkey.Encrypted(privateKey) {
		return "", nil
	}
	if passphrase := a.Env("GIT_PASSWORD"); passphrase != "" {
		return passphrase, nil
	}
	answer, err := ask(ctx, a, "Passphrase of the SSH key")
	if errors.Is(err, ui.ErrNoTerminal) {
		return "", clierr.WithHint("give it with GIT_PASSWORD", "asking for the passphrase of the SSH key: %w", err)
	}
	return answer, err
}

// teamWords is how a host's teams or groups are given access.
type teamWords struct {
	// flag is the flag that names them.
	flag string
	// permission is what they get unless it is said, permissions what they can get.
	permission  string
	permissions []string
	// spaced says that names may have spaces in them.
	spaced bool
}

func (t teamWords) usage() string {
	if len(t.permissions) == 1 {
		return fmt.Sprintf("a %s to give access to the repository; several are separated by commas", t.flag)
	}
	return fmt.Sprintf("a %s to give access, and which: NAME:%s, where the access is one of %s; several are separated by commas",
		t.flag, t.permission, strings.Join(t.permissions, ", "))
}

// parse reads NAME and NAME:PERMISSION.
func (t teamWords) parse(words []string) ([]githost.Team, error) {
	var teams []githost.Team
	for _, word := range words {
		name, permission, given := strings.Cut(strings.TrimSpace(word), ":")
		if !given {
			permission = t.permission
		}
		if name == "" || strings.ContainsAny(name, " \t") && !t.spaced {
			return nil, clierr.WithHint("name it as in --"+t.flag+"=ops", "invalid %s %q", t.flag, word)
		}
		if !slices.Contains(t.permissions, permission) {
			return nil, clierr.WithHint("the access is one of "+strings.Join(t.permissions, ", "), "unknown access %q for %s %q", permission, t.flag, name)
		}
		team := githost.Team{Name: name, Permission: permission}
		if i := slices.IndexFunc(teams, func(other githost.Team) bool { return strings.EqualFold(other.Name, name) }); i >= 0 && teams[i] != team {
			return nil, fmt.Errorf("%s %q is to have access %q and %q: give one", t.flag, name, teams[i].Permission, permission)
		} else if i < 0 {
			teams = append(teams, team)
		}
	}
	return teams, nil
}
