package testgithost

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State returns the repositories as text.
func (g *GitHub) State() (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(g.Repositories)) {
		if err := g.describe(&b, g.Repositories[name]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func (g *GitHub) describe(b *strings.Builder, r *GitHubRepository) error {
	standard, err := g.Git.Default(r.FullName())
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s repository %s %q, default branch %s\n", r.Visibility, r.FullName(), r.Description, standard)
	for _, login := range slices.Sorted(maps.Keys(r.Roles)) {
		fmt.Fprintf(b, "user %s: %s\n", login, r.Roles[login])
	}
	for _, team := range slices.Sorted(maps.Keys(r.Teams)) {
		fmt.Fprintf(b, "team %s: %s\n", team, r.Teams[team])
	}
	for _, k := range r.Keys {
		algorithm, _, _ := strings.Cut(k.Key, " ")
		fmt.Fprintf(b, "key %s: %s, %s\n", k.Title, algorithm, map[bool]string{true: "read", false: "read and write"}[k.ReadOnly])
	}
	branches, err := g.Git.Branches(r.FullName())
	if err != nil {
		return err
	}
	for _, branch := range branches {
		log, err := g.Git.Log(r.FullName(), branch)
		if err != nil {
			return err
		}
		for _, line := range log {
			fmt.Fprintf(b, "%s: %s\n", branch, line)
		}
	}
	for _, p := range r.Pulls {
		fmt.Fprintf(b, "pull request %d, %s: %s into %s: %s\n", p.Number, map[bool]string{false: "open", true: "merged"}[p.Merged], p.Head, p.Base, p.Title)
	}
	return nil
}

// gitHubSettings are the settings of scripts by their first word.
var gitHubSettings = map[string]func(g *GitHub, words []string) error{
	"classic": func(g *GitHub, w []string) error { g.Classic(w[0], w[1], w[2:]...); return nil },
	"fine":    func(g *GitHub, w []string) error { g.Fine(w[0], w[1], w[2:]...); return nil },
	"repository": func(g *GitHub, w []string) error {
		if _, err := g.Add(w[0], w[1]); err != nil {
			return err
		}
		return g.change(w[0], func(r *GitHubRepository) {
			for _, role := range w[2:] {
				login, level, _ := strings.Cut(role, "=")
				r.Roles[login] = level
			}
		})
	},
	"key": func(g *GitHub, w []string) error {
		return g.change(w[0], func(r *GitHubRepository) {
			r.Keys = append(r.Keys, &GitHubKey{Title: "script", Key: strings.Join(w[1:], " "), ReadOnly: true})
		})
	},
	"archive": func(g *GitHub, w []string) error {
		return g.change(w[0], func(r *GitHubRepository) { r.Archived = true })
	},
	"reviews": func(g *GitHub, w []string) error {
		return g.change(w[0], func(r *GitHubRepository) {
			r.Protection[w[1]] = &GitHubProtection{Reviews: true, EnforceAdmins: true}
		})
	},
	"rule": func(g *GitHub, w []string) error {
		return g.change(w[0], func(r *GitHubRepository) {
			r.Rules[w[1]] = append(r.Rules[w[1]], GitHubRule{Type: w[2], Ruleset: 7})
		})
	},
	"unprotect": func(g *GitHub, w []string) error {
		return g.change(w[0], func(r *GitHubRepository) { clear(r.Protection); clear(r.Rules) })
	},
	"no-deploy-keys": func(g *GitHub, w []string) error {
		g.Edit(func() { g.Organizations[w[0]].NoDeployKeys = true })
		return nil
	},
	"sign-on": func(g *GitHub, w []string) error {
		g.Edit(func() { g.Tokens[w[0]].SignOn = w[1:] })
		return nil
	},
	"expires": func(g *GitHub, w []string) error {
		end, err := time.Parse(time.RFC3339, w[1])
		g.Edit(func() { g.Tokens[w[0]].Expires = end })
		return err
	},
	"limit": func(g *GitHub, w []string) error {
		until, err := time.Parse(time.RFC3339, w[0])
		g.Edit(func() { g.Limit = GitHubLimit{Until: until, Times: 100} })
		return err
	},
	"merge": func(g *GitHub, w []string) error {
		number, err := strconv.Atoi(w[1])
		if err != nil {
			return err
		}
		return g.Merge(w[0], number)
	},
	"commit": func(g *GitHub, w []string) error {
		return g.Git.Commit(w[0], w[1], "Change "+w[2], map[string]string{w[2]: strings.Join(w[3:], " ") + "\n"})
	},
}

func (g *GitHub) change(name string, edit func(*GitHubRepository)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.Repositories[name]
	if r == nil {
		return fmt.Errorf("there is no repository %s", name)
	}
	edit(r)
	return nil
}

// Set applies a setting from a script.
func (g *GitHub) Set(words ...string) error {
	setting := gitHubSettings[words[0]]
	if setting == nil {
		return fmt.Errorf("unknown setting %q", words[0])
	}
	return setting(g, words[1:])
}
