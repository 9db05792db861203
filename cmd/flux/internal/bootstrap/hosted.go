package bootstrap

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/bootstrap/credentials"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/fit"
)

// hostedFlags holds the flags for Git hosts with an API. The hostRow selects the flags of its
// command.
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

	// username is the user name for the token over HTTPS, if the host requires one.
	username string
	// deployToken selects a deploy token of the host for the cluster.
	deployToken bool
}

// newHosted returns the command of a Git host.
func newHosted(a *app.App, common *flags, row hostRow) *cobra.Command {
	o := &hostedFlags{flags: common}
	cmd := &cobra.Command{
		Use:     row.word,
		Short:   fmt.Sprintf("Bootstrap Flux on a cluster from a repository on %s", row.name),
		Long:    row.long(),
		Example: row.example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runHosted(a, cmd, o, row) },
	}
	o.add(cmd.Flags(), row)
	return cmd
}

// long returns the help text of the command.
func (row hostRow) long() string {
	return paragraph(fmt.Sprintf(`Create the repository on %s if it does not exist,
commit the Flux manifests to it, install them on the cluster and configure the cluster
to sync from the repository. Run the command again to upgrade Flux, to resume an
interrupted bootstrap or to change flags. Nothing is changed if a preflight check of
the token, the repository or the cluster fails.`, row.name), 0) + "\n\nToken:\n" +
		paragraph(fmt.Sprintf(`The token is read from %s (--token-from); otherwise, the
command prompts for it. %s`, row.tokenPlaces(), row.scopes), 2)
}

// tokenPlaces lists the token sources.
func (row hostRow) tokenPlaces() string {
	if row.tokenCLI == "" {
		return row.tokenEnv + " or standard input"
	}
	return fmt.Sprintf("%s, standard input or the %s CLI", row.tokenEnv, row.tokenCLI)
}

// paragraph wraps a text at 79 columns, with an indent.
func paragraph(text string, indent int) string {
	return fit.Fold(strings.Repeat(" ", indent)+strings.Join(strings.Fields(text), " "), indent, 79)
}

func (o *hostedFlags) add(fs *pflag.FlagSet, row hostRow) {
	fs.StringVar(&o.owner, "owner", "", row.owner)
	fs.StringVar(&o.repository, "repository", "", "name of the repository")
	fs.Var(&o.path, "path", "path to the directory of this cluster in the repository (default: the root)")
	fs.DurationVar(&o.interval, "interval", time.Minute, "sync interval of the cluster, e.g. 1m or 10m")
	fs.StringVar(&o.hostname, "hostname", row.hostname, "host and optional port of "+row.name)
	fs.BoolVar(&o.allowHTTP, "allow-insecure-http", false, "allow http:// in --hostname, which sends the token unencrypted")
	fs.Var(command.Choice{Value: &o.tokenFrom, Allowed: credentials.TokenSources(row.tokenCLI)}, "token-from", "token source: "+strings.Join(credentials.TokenSources(row.tokenCLI), ", "))
	fs.BoolVar(&o.personal, "personal", false, "owner is a user account, not an organization, group or project")
	fs.BoolVar(&o.private, "private", true, "create a private repository")
	if len(row.visibilities) > 0 {
		o.visibility = row.visibility
		fs.Var(command.Choice{Value: &o.visibility, Allowed: row.visibilities}, "visibility", "visibility of the repository: "+strings.Join(row.visibilities, ", "))
	}
	fs.StringVar(&o.description, "description", "", "description of the repository")
	fs.StringSliceVar(&o.teams, row.teams.flag, nil, row.teams.usage())
	fs.BoolVar(&o.reconcile, "reconcile", false, "update an existing repository to match these flags")
	fs.BoolVar(&o.readWriteKey, "read-write-key", false, "create the deploy key with write access")
	if row.extra != nil {
		row.extra(o, fs)
	}
}

// runHosted validates the flags, reads the token and runs bootstrap.
func runHosted(a *app.App, cmd *cobra.Command, o *hostedFlags, row hostRow) error {
	hosted, err := o.hosted(cmd, row)
	if err != nil {
		return err
	}
	source := o.tokenFrom
	if o.RegistryCreds == "-" && (source == "stdin" || source == "" && a.Env(row.tokenEnv) == "") {
		return hint.Errorf("set "+row.tokenEnv, "the token and --registry-creds cannot both be read from standard input")
	}
	if hosted.CABundle, err = credentials.Certificates(o.caFile); err != nil {
		return err
	}
	privateKey, err := credentials.File("private-key-file", o.privateKeyFile)
	if err != nil {
		return err
	}
	passphrase, err := credentials.KeyPassphrase(cmd.Context(), a, privateKey)
	if err != nil {
		return err
	}
	plan, err := o.plan(a, cmd, privateKey, passphrase)
	if err != nil {
		return err
	}
	o.warnIdle(a, cmd, row)
	if hosted.Token, err = credentials.HostToken(cmd.Context(), a, source, row.tokenEnv, hosted.Hostname); err != nil {
		return err
	}
	caller := rest.Caller{UserAgent: "flux/" + a.Build.Version, Now: a.Now, Waiting: a.UI.Waiting}
	client, err := caller.Client(hosted)
	if err != nil {
		return err
	}
	plan.Path, plan.Sync.Interval, plan.DeployToken = string(o.path), o.interval, o.deployToken
	if plan.Host, err = row.host.Open(hosted, client); err != nil {
		return err
	}
	return o.mode.Run(cmd.Context(), a, plan)
}

// validName reports whether Git hosts accept a name: letters and digits of any
// language, '.', '-' and '_'.
func validName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("._-", r)
	})
}

// validOwner reports whether Git hosts accept the name of an owner, which may start
// with a tilde, but not with a dot or a dash.
func validOwner(text string) bool {
	text = strings.TrimPrefix(text, "~")
	return validName(text) && text[0] != '.' && text[0] != '-'
}

// hosted validates the flags and returns the repository.
func (o *hostedFlags) hosted(cmd *cobra.Command, row hostRow) (githost.Hosted, error) {
	var none githost.Hosted
	switch {
	case o.owner == "":
		return none, hint.Errorf("set it with --owner", "--owner is required: %s", row.owner)
	case o.repository == "":
		return none, hint.Errorf("set it with --repository, e.g. --repository=fleet", "--repository is required")
	case !validName(o.repository) || strings.Trim(o.repository, ".") == "":
		return none, hint.Errorf("set only the name, e.g. --repository=fleet, and its owner with --owner", "invalid repository name %q", o.repository)
	case o.tokenAuth && o.deployToken:
		return none, hint.Errorf("use --deploy-token-auth for read-only access", "--token-auth and --deploy-token-auth are mutually exclusive")
	case strings.HasSuffix(o.repository, ".git"):
		return none, hint.Errorf("use --repository="+strings.TrimSuffix(o.repository, ".git"), "the repository name must not end in .git")
	}
	owner := strings.Trim(o.owner, "/")
	parts := strings.Split(owner, "/")
	if row.spaced {
		parts = strings.Split(strings.ReplaceAll(owner, " ", "-"), "/")
	}
	if len(parts) > 1 && !row.nested || slices.ContainsFunc(parts, func(p string) bool { return !validOwner(p) }) {
		return none, hint.Errorf("use the owner as in the URLs of "+row.name, "invalid owner %q", o.owner)
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
		TokenAuth: o.tokenAuth, ReadWriteKey: o.readWriteKey, SSHHostname: o.sshHostname, Username: o.username,
	}, nil
}

// visible returns the visibility of the repository from --visibility or --private.
func (o *hostedFlags) visible(cmd *cobra.Command) (string, error) {
	byPrivate := "public"
	if o.private {
		byPrivate = "private"
	}
	set := cmd.Flags().Changed("visibility")
	if set && cmd.Flags().Changed("private") && o.visibility != byPrivate {
		return "", fmt.Errorf("--private=%t contradicts --visibility=%s: remove one of them", o.private, o.visibility)
	}
	if set {
		return o.visibility, nil
	}
	return byPrivate, nil
}

// parseHostname parses --hostname: an optional scheme, a host with an optional port, and a path for
// hosts that support one.
func parseHostname(s string, allowHTTP, mayBeBelow bool) (scheme, host, below string, err error) {
	const remedy = "set only the host, e.g. --hostname=git.example.com"
	address := s
	if !strings.Contains(s, "://") {
		address = "https://" + s
	}
	u, err := url.Parse(address)
	switch {
	case s == "":
		return "", "", "", hint.Errorf(remedy, "--hostname is required")
	case err != nil || u.Hostname() == "" || strings.ContainsAny(u.Host, " _"):
		return "", "", "", hint.Errorf(remedy, "invalid host in --hostname")
	case u.User != nil:
		return "", "", "", hint.Errorf(remedy, "--hostname contains a user name or password")
	case strings.Trim(u.Path, "/") != "" && !mayBeBelow || u.RawQuery != "" || u.Fragment != "":
		return "", "", "", hint.Errorf(remedy, "--hostname has a path after the host %q", u.Host)
	case u.Scheme == "http" && !allowHTTP:
		return "", "", "", hint.Errorf("remove http://, or set --allow-insecure-http", "http:// sends the token unencrypted")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", "", hint.Errorf(remedy, "unknown scheme %q in --hostname", u.Scheme)
	}
	return u.Scheme, strings.ToLower(u.Host), strings.Trim(u.Path, "/"), nil
}

// warnIdle warns of flags that have no effect in combination with the others.
func (o *hostedFlags) warnIdle(a *app.App, cmd *cobra.Command, row hostRow) {
	byToken := o.tokenAuth || o.deployToken
	if f := cmd.Flags().Lookup("private"); f.Hidden && f.Changed {
		a.UI.Warning("--private is deprecated: use --visibility")
	}
	warnIdle(a, cmd, append(o.idleKeys(byToken), []idleFlags{
		{byToken, "the cluster uses the token and no SSH key", []string{"ssh-hostname", "ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits", "ssh-hostkey-algos", "ssh-known-hosts-file", "read-write-key"}},
		{o.tokenAuth && !o.deployToken, "with --token-auth the cluster uses your token, which flux cannot rotate", []string{"rotate-key"}},
		{byToken && !o.sign.Reuse, "the cluster uses the token and no SSH key", []string{"private-key-file"}},
		{o.personal, "user repositories have no " + row.teams.flag + "s", []string{row.teams.flag}},
	}...))
}

// teamWords describes the flag that grants teams or groups access.
type teamWords struct {
	// flag is the name of the flag.
	flag string
	// permission is the default, permissions lists the allowed ones.
	permission  string
	permissions []string
	// spaced reports whether names may contain spaces.
	spaced bool
}

func (t teamWords) usage() string {
	if len(t.permissions) == 1 {
		return fmt.Sprintf("%s with access to the repository (comma-separated)", t.flag)
	}
	return fmt.Sprintf("%s with access to the repository, as NAME or NAME:PERMISSION (comma-separated, default permission %s); permissions: %s",
		t.flag, t.permission, strings.Join(t.permissions, ", "))
}

// parse parses NAME and NAME:PERMISSION.
func (t teamWords) parse(words []string) ([]githost.Team, error) {
	var teams []githost.Team
	for _, word := range words {
		name, permission, given := strings.Cut(strings.TrimSpace(word), ":")
		if !given {
			permission = t.permission
		}
		if name == "" || strings.ContainsAny(name, " \t") && !t.spaced {
			return nil, hint.Errorf("use the form --"+t.flag+"=ops", "invalid %s %q", t.flag, word)
		}
		if !slices.Contains(t.permissions, permission) {
			return nil, hint.Errorf("must be one of "+strings.Join(t.permissions, ", "), "unknown permission %q for %s %q", permission, t.flag, name)
		}
		team := githost.Team{Name: name, Permission: permission}
		if i := slices.IndexFunc(teams, func(other githost.Team) bool { return strings.EqualFold(other.Name, name) }); i >= 0 && teams[i] != team {
			return nil, fmt.Errorf("%s %q has permissions %q and %q: set one", t.flag, name, teams[i].Permission, permission)
		} else if i < 0 {
			teams = append(teams, team)
		}
	}
	return teams, nil
}
