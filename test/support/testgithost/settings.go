package testgithost

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is a verb in the contents of a host, with the number of its arguments.
type setting struct {
	least int
	apply func(args []string) error
}

// simple is a setting that cannot fail.
func simple(least int, apply func(args []string)) setting {
	return setting{least, func(args []string) error { apply(args); return nil }}
}

// Add applies lines of contents: a verb and its arguments, as in
//
//	repository NAME [VISIBILITY] [archived] [disabled] [deleting] [norequests] [USER=ROLE…]
//	grant REPOSITORY TEAM ROLE
//	key REPOSITORY ro|rw|expired TITLE PUBLIC KEY
//	archive REPOSITORY
//	commit REPOSITORY BRANCH FILE TEXT…   as another user
//	merge REPOSITORY                      merge the open pull requests
//	base PATH                             serve below a path
//	nossh                                 disable SSH
//	limit N SECONDS                       accept N requests, then none for a time
//
// and the verbs of the host.
func (s *store) Add(contents string) error {
	for line := range strings.Lines(contents) {
		if words := strings.Fields(line); len(words) > 0 {
			if err := s.Set(words...); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
		}
	}
	return nil
}

// Set applies a line of contents.
func (s *store) Set(words ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.settings[words[0]]
	switch {
	case !ok:
		return fmt.Errorf("unknown verb %q", words[0])
	case len(words)-1 < known.least:
		return fmt.Errorf("it takes %d arguments", known.least)
	}
	return known.apply(words[1:])
}

func (s *store) commonSettings() map[string]setting {
	return map[string]setting{
		"repository": {1, s.addRepository},
		"archive":    s.change(1, func(r *Repository, _ []string) { r.Archived = true }),
		"grant":      s.change(3, func(r *Repository, args []string) { r.Teams[args[0]] = args[1] }),
		"key": s.change(4, func(r *Repository, args []string) {
			r.Keys = append(r.Keys, &Key{ID: s.id(), Title: args[1], Key: strings.Join(args[2:], " "), ReadOnly: args[0] != "rw", expired: args[0] == "expired"})
		}),
		"commit": {4, func(args []string) error {
			r := s.repository(args[0])
			if r == nil {
				return fmt.Errorf("there is no repository %s", args[0])
			}
			return s.Git.Commit(r.git, args[1], "Change "+args[2], map[string]string{args[2]: strings.Join(args[3:], " ") + "\n"})
		}},
		"merge": {1, func(args []string) error { return s.merge(args[0]) }},
		"base":  simple(1, func(args []string) { s.Base = args[0] }),
		"nossh": simple(0, func([]string) { s.noSSH = true }),
		"limit": {2, func(args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			seconds, err := strconv.Atoi(args[1])
			s.quota = &quota{n, time.Duration(seconds) * time.Second}
			return err
		}},
	}
}

// change is a setting of a repository, which is its first argument.
func (s *store) change(least int, edit func(r *Repository, args []string)) setting {
	return setting{least, func(args []string) error {
		r := s.repository(args[0])
		if r == nil {
			return fmt.Errorf("there is no repository %s", args[0])
		}
		edit(r, args[1:])
		return nil
	}}
}

func (s *store) addRepository(args []string) error {
	r := s.create(args[0], "private", "main")
	for _, arg := range args[1:] {
		user, role, given := strings.Cut(arg, "=")
		switch {
		case given:
			r.Roles[user] = role
		case arg == "archived":
			r.Archived = true
		case arg == "disabled":
			r.Disabled = true
		case arg == "deleting":
			r.deleting = true
		case arg == "norequests":
			r.noRequests = true
		case slices.Contains([]string{"private", "internal", "public"}, arg):
			r.Visibility = arg
		default:
			return fmt.Errorf("unknown argument %q", arg)
		}
	}
	return nil
}
