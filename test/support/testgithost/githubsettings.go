package testgithost

import (
	"strconv"
	"time"
)

// githubSettings lists the verbs of GitHub:
//
//	classic SECRET LOGIN SCOPE…
//	fine SECRET LOGIN PERMISSION=LEVEL…
//	reviews REPOSITORY BRANCH
//	rule REPOSITORY BRANCH TYPE
//	unprotect REPOSITORY
//	no-deploy-keys ORGANIZATION
//	sign-on SECRET ORGANIZATION…
//	expires SECRET TIME
//	limit TIME [REQUESTS]
func (g *GitHub) githubSettings() map[string]setting {
	return map[string]setting{
		"classic": simple(2, func(w []string) { g.classic(w[0], w[1], w[2:]) }),
		"fine":    simple(2, func(w []string) { g.fine(w[0], w[1], w[2:]) }),
		"reviews": g.change(2, func(r *Repository, w []string) {
			r.Protection[w[0]] = &GitHubProtection{Reviews: true, EnforceAdmins: true}
		}),
		"rule": g.change(3, func(r *Repository, w []string) {
			r.Rules[w[0]] = append(r.Rules[w[0]], GitHubRule{Type: w[1], Ruleset: 7})
		}),
		"unprotect":      g.change(1, func(r *Repository, _ []string) { clear(r.Protection); clear(r.Rules) }),
		"no-deploy-keys": simple(1, func(w []string) { g.Organizations[w[0]].NoDeployKeys = true }),
		"sign-on":        simple(1, func(w []string) { g.Tokens[w[0]].SignOn = w[1:] }),
		"expires": {2, func(w []string) (err error) {
			g.Tokens[w[0]].Expires, err = time.Parse(time.RFC3339, w[1])
			return err
		}},
		"limit": {1, func(w []string) error {
			until, err := time.Parse(time.RFC3339, w[0])
			g.Limit = GitHubLimit{Until: until, Times: 100}
			if err == nil && len(w) > 1 {
				g.Limit.Times, err = strconv.Atoi(w[1])
			}
			return err
		}},
	}
}
