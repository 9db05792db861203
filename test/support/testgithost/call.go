package testgithost

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// call is a request to a host. The state is locked.
type call struct {
	*store
	w http.ResponseWriter
	r *http.Request
	// target is the repository of the path, or nil for other paths.
	target *Repository
}

func (c *call) reply(status int, body any) { reply(c.w, status, body) }

func (c *call) refuse(r refusal) { c.reply(r.status, r.body) }

// done responds without a body.
func (c *call) done() { c.w.WriteHeader(http.StatusNoContent) }

// read decodes the body of a request. A body that is not documented fails the test.
func (c *call) read(into any) bool {
	decoder := json.NewDecoder(c.r.Body)
	decoder.DisallowUnknownFields()
	if decoder.Decode(into) != nil {
		c.unknownCall(c.w, c.r)
		return false
	}
	return true
}

// number returns an integer query parameter, or a default if it is missing or out of range.
func (c *call) number(name string, standard, least, most int) int {
	n, err := strconv.Atoi(c.r.URL.Query().Get(name))
	if err != nil || n < least || n > most {
		return standard
	}
	return n
}

func (c *call) listKeys() {
	all := []any{}
	for _, k := range c.target.Keys {
		all = append(all, c.keyObject(c.target, k))
	}
	c.page(c, all)
}

// addKey adds a key unless it is invalid or in use elsewhere.
func (c *call) addKey(k *Key, taken bool, refused refusal) {
	fields := strings.Fields(k.Key)
	switch {
	case len(fields) < 2 || !strings.HasPrefix(fields[0], "ssh-") && !strings.HasPrefix(fields[0], "ecdsa-"):
		c.refuse(c.row().badKey)
	case taken:
		c.refuse(refused)
	default:
		if k.ID == 0 {
			k.ID = c.id()
		}
		c.target.Keys = append(c.target.Keys, k)
		c.reply(http.StatusCreated, c.keyObject(c.target, k))
	}
}

// keyIn returns a key of a repository, or nil if there is none.
func keyIn(r *Repository, text string) *Key {
	i := slices.IndexFunc(r.Keys, func(k *Key) bool { return bareKey(k.Key) == bareKey(text) })
	if i < 0 {
		return nil
	}
	return r.Keys[i]
}

// withKey calls do with the key of the path.
func (c *call) withKey(do func(*Key)) {
	i := slices.IndexFunc(c.target.Keys, func(k *Key) bool { return strconv.FormatInt(k.ID, 10) == c.r.PathValue("id") })
	if i < 0 {
		c.refuse(c.row().noKey)
		return
	}
	do(c.target.Keys[i])
}

func (c *call) removeKey() {
	c.withKey(func(removed *Key) {
		c.target.Keys = slices.DeleteFunc(c.target.Keys, func(k *Key) bool { return k == removed })
		c.done()
	})
}

// listPulls lists the pull requests for which shown reports true.
func (c *call) listPulls(shown func(*Pull) bool) {
	all := []any{}
	for _, p := range c.target.Pulls {
		if shown(p) {
			all = append(all, c.pullObject(c.target, p, false))
		}
	}
	c.page(c, all)
}

// openPull opens a pull request between two branches.
func (c *call) openPull(p *Pull) {
	for _, branch := range []string{p.Head, p.Base} {
		if _, err := c.Git.Head(c.target.git, branch); err != nil {
			c.refuse(c.row().noBranch(branch))
			return
		}
	}
	for _, open := range c.target.Pulls {
		if !open.Merged && open.Head == p.Head && open.Base == p.Base {
			c.refuse(c.row().pullExists(c.target, open))
			return
		}
	}
	p.Number = len(c.target.Pulls) + 1
	c.target.Pulls = append(c.target.Pulls, p)
	c.reply(http.StatusCreated, c.pullObject(c.target, p, true))
}
