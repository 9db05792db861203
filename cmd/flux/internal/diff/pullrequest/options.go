// Package pullrequest has the flags of diff that write the result to the pull
// request of a CI system.
package pullrequest

import (
	"cmp"
	"errors"
	"path"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/pulls"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/provider"
	"github.com/fluxkit/flux/internal/hint"
)

// Options holds the flags for publishing the result.
type Options struct {
	comment     bool
	key, status string
}

// Add adds the flags.
func (o *Options) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.comment, "comment", false, "create or update a comment with the result on the pull request of the CI system")
	fs.StringVar(&o.key, "comment-key", "", "key that identifies the comment on the pull request (default: the value of --path)")
	fs.StringVar(&o.status, "status", "", "name of the commit status to set, e.g. flux/production")
}

// maxKey is the maximum length of a key in bytes.
const maxKey = 200

// Open returns the Gate for the pull request of the CI system, nil without the flags. By default,
// the cluster directories in paths identify the comment.
func (o *Options) Open(a *app.App, paths []string) (*Gate, error) {
	flag := "--comment"
	if !o.comment {
		flag = "--status"
	}
	switch {
	case !o.comment && o.key != "":
		return nil, hint.Errorf("add --comment, or omit --comment-key", "--comment-key requires --comment")
	case !o.comment && o.status == "":
		return nil, nil // the result is not written to a pull request
	case len(o.key) > maxKey || strings.ContainsAny(o.key, "\r\n"):
		return nil, hint.Errorf("use a short name, e.g. production", "invalid --comment-key: must be one line of at most %d bytes", maxKey)
	}
	p := ci.Read(a.Env)
	switch {
	case p.System == "":
		return nil, hint.Errorf("run it in the pipeline of a pull request, or write the comment to a file with -o github=FILE", "%s: no CI system found in the environment", flag)
	case p.Number == 0:
		return nil, hint.Errorf("run this command only for pull requests, or omit "+flag, "%s: %s runs without a pull request", flag, p.System)
	case !p.Known():
		return nil, hint.Errorf("write the comment to a file with -o github=FILE, and post it in another step", "%s: the variables of %s do not contain the URL of a supported Git host", flag, p.System)
	}
	g := &Gate{Options: *o, app: a, request: p, host: githost.PullRequestHosts()[p.Host]}
	if g.key == "" {
		var folders []string
		for _, folder := range paths {
			folders = append(folders, path.Clean(folder))
		}
		g.key = cmp.Or(strings.Join(folders, " "), "all clusters")
	}
	return g, g.open()
}

// open connects to the host.
func (g *Gate) open() error {
	hosted, client, err := pulls.Connect(g.app, g.request)
	if errors.As(err, new(*pulls.NoTokenError)) && g.request.Fork {
		return nil // Post reports it
	}
	if err != nil {
		return err
	}
	g.pull = provider.OpenPull(g.request.Host, hosted, g.request.Number, client)
	return nil
}
