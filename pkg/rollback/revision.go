package rollback

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
	"github.com/fluxkit/flux/pkg/tree"
)

// complete matches the values that a field accepts.
var complete = map[string]func() *regexp.Regexp{
	"commit":  lazy.Regexp(`^[0-9a-f]{40}$`),
	"digest":  lazy.Regexp(`^sha256:[0-9a-f]{64}$`),
	"version": lazy.Regexp(`^v?[0-9]+\.[0-9]+\.[0-9]+([-+]\S+)?$`),
}

// selects returns what the field selects: a commit, a digest or a version.
func (p *Plan) selects() string { return p.Field[strings.LastIndex(p.Field, ".")+1:] }

// value returns the value of the field that selects a revision.
func (p *Plan) value(revision string) string {
	switch p.selects() {
	case "commit":
		return revision[strings.LastIndexAny(revision, "@:")+1:]
	case "digest":
		return revision[strings.LastIndex(revision, "@")+1:]
	}
	return revision
}

// Current returns the last attempted revision of the object.
func (p *Plan) Current(o controllers.Object) string {
	path := controllers.Path{"status.lastAttemptedRevision", "status.lastAppliedRevision"}
	if p.object.Kind.Release && p.selects() == "digest" {
		path = controllers.Path{"status.lastAttemptedRevisionDigest", "status.history[0].ociDigest"}
	}
	return path.String(o)
}

// revision returns the revision of an entry of the history, or "" if the entry does not contain it.
func (p *Plan) revision(e tree.HistoryEntry) string {
	if p.object.Kind.Release && p.selects() == "digest" {
		return e.Artifact
	}
	return e.Revision
}

// target returns the revision to which the object is rolled back.
func (p *Plan) target(wanted string) (string, error) {
	history := tree.Link{Kind: p.object.Kind, Live: p.object.Object}.History()
	if wanted != "" {
		return p.resolve(wanted, history)
	}
	good, found := p.lastGood(history)
	if !found {
		return "", p.noTarget(history)
	}
	if values := (controllers.Path{"status.lastAttemptedConfigDigest", "status.history[0].configDigest"}).String(p.object.Object); good.Config != "" && good.Config != values {
		p.Notes = append(p.Notes, fmt.Sprintf("the values are not rolled back: they differ from those of release %s", good.Release))
	}
	if p.object.Kind.Release {
		p.chart = good.Revision
	}
	return p.revision(good), nil
}

// lastGood returns the newest successful entry whose content differs from the last attempt.
func (p *Plan) lastGood(history []tree.HistoryEntry) (tree.HistoryEntry, bool) {
	now := p.value(p.CurrentRevision)
	attempted := map[string]bool{} // digests of the objects in the last attempt
	for _, e := range history {
		if p.value(p.revision(e)) == now && !p.object.Kind.Release && e.Digest != "" {
			attempted[e.Digest] = true
		}
	}
	for _, e := range history {
		value := p.value(p.revision(e))
		if e.Succeeded && complete[p.selects()]().MatchString(value) && value != now && !attempted[e.Digest] {
			return e, true
		}
	}
	applied := (controllers.Path{"status.lastAppliedRevision"}).String(p.object.Object)
	usable := complete[p.selects()]().MatchString(p.value(applied)) && applied != p.CurrentRevision
	if len(history) == 0 && usable { // controllers without a history
		return tree.HistoryEntry{Revision: applied}, true
	}
	return tree.HistoryEntry{}, false
}

// noTarget returns the error for an object without another good revision.
func (p *Plan) noTarget(history []tree.HistoryEntry) error {
	now := p.value(p.CurrentRevision)
	for _, e := range history {
		if p.object.Kind.Release && e.Succeeded && p.value(p.revision(e)) == now {
			return hint.Errorf("revert the change of the values in Git", "the last good release of %s has the same chart %s: a rollback would change nothing", p.object, cmp.Or(e.Revision, now))
		}
	}
	return hint.Errorf(hint.Command("specify one with --revision; flux history "+p.object.Kind.Noun()+" %s -n %s lists the recorded ones", p.object.Name, p.object.Namespace), "the history of %s has no other successful revision", p.object)
}

// resolve returns the revision that the user has specified: a revision in the history, which may be abbreviated, or
// a complete revision.
func (p *Plan) resolve(wanted string, history []tree.HistoryEntry) (string, error) {
	found := map[string]string{}
	for _, e := range history {
		revision := p.revision(e)
		if complete[p.selects()]().MatchString(p.value(revision)) && (reconcile.RevisionMatches(revision, wanted) || reconcile.RevisionMatches(e.Origin, wanted)) {
			found[p.value(revision)] = revision
		}
	}
	switch value := p.value(wanted); {
	case len(found) > 1:
		return "", hint.Errorf("specify the complete "+p.selects(), "several revisions in the history of %s match %q", p.object, wanted)
	case len(found) == 1:
		for _, revision := range found {
			return revision, nil
		}
	case complete[p.selects()]().MatchString(value):
		return wanted, nil
	}
	return "", hint.Errorf("specify a complete "+p.selects(), "%q is not a revision in the history of %s", wanted, p.object)
}
