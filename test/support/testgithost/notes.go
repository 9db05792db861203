package testgithost

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Note is a comment on a pull request.
type Note struct {
	ID     int64
	Author string
	Text   string
	// version is the number of edits.
	version int
}

// noteSettings lists verbs of all hosts:
//
//	pull REPOSITORY HEAD BASE         open a pull request
//	note REPOSITORY NUMBER USER TEXT  add a comment, in which \n is a line break
//	unnote REPOSITORY NUMBER          delete all comments
//	edit REPOSITORY NUMBER            edit all comments without a change of their text
//	fail REQUEST STATUS [TIMES]       reject requests whose method and path contain a text
func (s *store) noteSettings() map[string]setting {
	return map[string]setting{
		"pull": s.change(2, func(r *Repository, w []string) {
			r.Pulls = append(r.Pulls, &Pull{Number: len(r.Pulls) + 1, Title: w[0], Head: w[0], Base: w[1]})
		}),
		"note": s.change(3, func(r *Repository, w []string) {
			s.addNote(r.pull(w[0]), w[1], strings.ReplaceAll(strings.Join(w[2:], " "), `\n`, "\n"))
		}),
		"unnote": s.change(1, func(r *Repository, w []string) { r.pull(w[0]).Notes = nil }),
		"edit": s.change(1, func(r *Repository, w []string) {
			for _, n := range r.pull(w[0]).Notes {
				n.version++
			}
		}),
		"fail": {2, func(w []string) (err error) {
			s.rejected = &rejection{text: strings.ReplaceAll(w[0], "_", " "), times: 1000}
			if s.rejected.status, err = strconv.Atoi(w[1]); err == nil && len(w) > 2 {
				s.rejected.times, err = strconv.Atoi(w[2])
			}
			return err
		}},
	}
}

// rejection rejects requests.
type rejection struct {
	text          string
	status, times int
}

// rejects reports whether a request is rejected, and responds in that case.
func (s *store) rejects(w http.ResponseWriter, r *http.Request) bool {
	if s.rejected == nil || s.rejected.times == 0 || !strings.Contains(r.Method+" "+r.URL.Path, s.rejected.text) {
		return false
	}
	s.rejected.times--
	reply(w, s.rejected.status, map[string]any{"message": "Rejected by the test", "documentation_url": gitHubDocs, "status": strconv.Itoa(s.rejected.status)})
	return true
}

// pull returns a pull request by its number, or nil if there is none.
func (r *Repository) pull(number string) *Pull {
	i := slices.IndexFunc(r.Pulls, func(p *Pull) bool { return strconv.Itoa(p.Number) == number })
	if i < 0 {
		return nil
	}
	return r.Pulls[i]
}

func (s *store) addNote(p *Pull, author, text string) *Note {
	n := &Note{ID: s.id(), Author: author, Text: text}
	p.Notes = append(p.Notes, n)
	return n
}

// describeNotes writes the comments of a pull request for State.
func (p *Pull) describeNotes(out *strings.Builder) {
	for _, n := range p.Notes {
		fmt.Fprintf(out, "    comment of %s\n", n.Author)
		for line := range strings.Lines(strings.TrimRight(n.Text, "\n")) {
			out.WriteString(strings.TrimRight("      "+strings.TrimRight(line, "\n"), " ") + "\n")
		}
	}
}

// CommitStatus is a status of a commit.
type CommitStatus struct{ Commit, Name, State, Text, URL string }

// setStatus replaces the status of the same name, and reports whether the commit exists.
func (c *call) setStatus(s CommitStatus) bool {
	if _, err := c.Git.run(c.Git.Path(c.target.git), "cat-file", "-e", s.Commit+"^{commit}"); err != nil {
		return false
	}
	c.target.Statuses = append(slices.DeleteFunc(c.target.Statuses, func(old CommitStatus) bool {
		return old.Commit == s.Commit && old.Name == s.Name
	}), s)
	return true
}

// notedPull returns the pull request of the path. It responds with an error if there is none.
func (c *call) notedPull(missing refusal) *Pull {
	p := c.target.pull(c.r.PathValue("number"))
	if p == nil {
		c.refuse(missing)
	}
	return p
}

// withNote calls do with the comment of the path and its pull request.
func (c *call) withNote(missing refusal, do func(*Pull, *Note)) {
	for _, p := range c.target.Pulls {
		for _, n := range p.Notes {
			if strconv.FormatInt(n.ID, 10) == c.r.PathValue("note") {
				do(p, n)
				return
			}
		}
	}
	c.refuse(missing)
}

// drop removes a comment.
func (p *Pull) drop(n *Note) {
	p.Notes = slices.DeleteFunc(p.Notes, func(other *Note) bool { return other == n })
}
