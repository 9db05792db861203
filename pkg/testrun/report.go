package testrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/testrun/assert"
)

// The results of a run.
const (
	// Ready means that all objects are ready.
	Ready = "ready"
	// NotReady means that an object is not ready, or that two owners apply an object differently, or that
	// an assertion has failed.
	NotReady = "not-ready"
	// Undetermined means that nothing has failed, and that something is not known.
	Undetermined = "undetermined"
)

// The statuses of an object besides Ready and NotReady.
const (
	// Suspended objects are not reconciled.
	Suspended = "suspended"
	// NotReconciled objects were never reconciled.
	NotReconciled = "not-reconciled"
)

// Status is what became of a Flux object.
type Status struct {
	Object controllers.ID `json:"object"`
	Status string         `json:"status"`
	// Message is the message of the Ready condition, or why the object is suspended.
	Message string `json:"message"`
	// Order is the place of the object among those that became ready, 0 if it is not ready. After is
	// the time from the first object until it was ready, and Took that from its creation.
	Order int     `json:"order,omitempty"`
	After float64 `json:"afterSeconds,omitempty"`
	Took  float64 `json:"tookSeconds,omitempty"`
}

// Cause is the root cause of objects that are not ready.
type Cause struct {
	Object  controllers.ID `json:"object"`
	Code    string         `json:"code,omitempty"`
	Message string         `json:"message"`
	// Details are quoted conditions, events and logs.
	Details []string `json:"details,omitempty"`
	// File is the file with the manifest, if only one has it.
	File string `json:"file,omitempty"`
	// Remedies are fixes. A remedy with a command ends with the command.
	Remedies []string `json:"remedies,omitempty"`
	// Blocks are other objects that are not ready for the same cause.
	Blocks []controllers.ID `json:"blocks,omitempty"`
}

// Conflict is an object that more than one Kustomization or HelmRelease applies.
type Conflict struct {
	Object controllers.ID   `json:"object"`
	Owners []controllers.ID `json:"owners"`
	// Fields are the fields that the owners set to different values, so that each reverts the other.
	Fields []string `json:"fields,omitempty"`
	// Differs reports whether the owners apply different contents. Each reverts the other.
	Differs bool   `json:"differs"`
	File    string `json:"file,omitempty"`
}

// Orphan is an object with the labels of an owner whose inventory does not have it.
type Orphan struct {
	Object controllers.ID `json:"object"`
	Owner  controllers.ID `json:"owner"`
	// OwnerDeleted is set if the owner no longer exists, such as a Kustomization that does not prune.
	OwnerDeleted bool `json:"ownerDeleted,omitempty"`
}

// Deprecation is a warning of the API server about the manifest of an object.
type Deprecation struct {
	Object  controllers.ID `json:"object"`
	Message string         `json:"message"`
	File    string         `json:"file,omitempty"`
}

// Omission is an object that was not tested.
type Omission struct {
	Object controllers.ID `json:"object"`
	Reason string         `json:"reason"`
	// Intended is set if the run or the repository has suspended the object.
	Intended bool `json:"intended,omitempty"`
}

// Report is the result of a run.
type Report struct {
	Flux   string `json:"flux"`
	Path   string `json:"path,omitempty"`
	Result string `json:"result"`
	// Seconds is the time of the reconciliations.
	Seconds float64 `json:"seconds"`
	// Objects are the Flux objects in the order in which they became ready. Applied is the number of
	// other objects that they have applied.
	Objects []Status `json:"objects"`
	Applied int      `json:"applied"`
	Causes  []Cause  `json:"causes"`
	// Missing are the Secrets and ConfigMaps that exist neither in Git nor in the sandbox, and Generated
	// those that were created with generated values.
	Missing    []Need        `json:"missing"`
	Generated  []Need        `json:"generated,omitempty"`
	Conflicts  []Conflict    `json:"conflicts"`
	Orphans    []Orphan      `json:"orphans"`
	Deprecated []Deprecation `json:"deprecated"`
	NotTested  []Omission    `json:"notTested"`
	// Unmatched are the mappings that no source has used. It is empty if a cause keeps sources away.
	Unmatched []Mapping `json:"unmatched,omitempty"`
	Unknown   []string  `json:"unknown"`
	// Ignored are the arguments of controllers that the sandbox does not pass to them, with the reasons.
	Ignored     []string     `json:"ignoredArguments,omitempty"`
	Controllers []Controller `json:"controllers"`
	// Timeline is set if the head was pushed after a base.
	Timeline *Timeline `json:"timeline,omitempty"`
	// Tests are the results of the assertions in test files.
	Tests []assert.Result `json:"tests,omitempty"`
}

// AddTests adds the results of test files.
func (p *Report) AddTests(results []assert.Result) {
	p.Tests = results
	p.conclude()
}

// Controller is a controller of the sandbox.
type Controller struct {
	Name string `json:"name"`
	// Wanted is the version that belongs to the version of Flux, and Ran the one that ran.
	Wanted string `json:"wanted"`
	Ran    string `json:"ran"`
}

// examination finds out what has become of a run.
type examination struct{ *Run }

// Report examines what Read has read.
func (r *Run) Report(ctx context.Context) (*Report, error) {
	r.Progress("examining the result")
	report := &Report{
		Flux: r.Distribution.Version, Path: r.Repository.Path, Causes: []Cause{}, Missing: []Need{}, Conflicts: []Conflict{},
		Orphans: []Orphan{}, Deprecated: []Deprecation{}, NotTested: []Omission{}, Unknown: []string{}, Generated: r.generated,
	}
	report.Timeline = r.timeline
	for _, name := range r.Repository.Components {
		report.Controllers = append(report.Controllers, Controller{name, r.Distribution.Tags[name], r.Versions[name]})
	}
	var err error
	if _, report.Ignored, err = r.Sandbox.Controllers(ctx); err != nil {
		return nil, fmt.Errorf("examining the result: %w", err)
	}
	e := examination{r}
	e.listStatuses(report)
	for _, step := range []func(context.Context, *Report) error{e.listCauses, e.listMissing, e.listConflicts, e.listOrphans, e.listDeprecated} {
		if err := step(ctx, report); err != nil {
			return nil, fmt.Errorf("examining the result: %w", err)
		}
	}
	e.listUnmatched(report)
	report.conclude()
	return report, nil
}

// Count returns the number of ready resources, and of those that were to be reconciled.
func (p *Report) Count() (ready, all int) {
	for _, s := range p.Objects {
		if s.Status == Ready {
			ready++
		}
		if s.Status != Suspended {
			all++
		}
	}
	return ready, all
}

// conclude sets the result, and shortens messages.
func (p *Report) conclude() {
	p.Result = Ready
	for _, o := range p.NotTested {
		if !o.Intended {
			p.Result = Undetermined
		}
	}
	if len(p.Unknown) > 0 || len(p.Objects) == 0 || p.outcomes(assert.Undetermined) {
		p.Result = Undetermined
	}
	failed := slices.ContainsFunc(p.Objects, func(s Status) bool { return s.Status == NotReady || s.Status == NotReconciled })
	differs := slices.ContainsFunc(p.Conflicts, func(c Conflict) bool { return c.Differs })
	if len(p.Causes) > 0 || failed && !p.unsettled() || differs || p.outcomes(assert.Failed) {
		p.Result = NotReady
	}
	budget.ShortenTexts(p)
}

// outcomes reports whether an assertion has an outcome.
func (p *Report) outcomes(o assert.Outcome) bool {
	return slices.ContainsFunc(p.Tests, func(r assert.Result) bool { return r.Outcome == o })
}

// unsettled reports whether the time was over before all objects were reconciled.
func (p *Report) unsettled() bool {
	return slices.ContainsFunc(p.Unknown, func(line string) bool { return strings.HasPrefix(line, inTime) })
}

// inTime begins the lines about objects that were still being reconciled.
const inTime = "not reconciled in time: "

// listStatuses lists all Flux objects.
func (r examination) listStatuses(report *Report) {
	var start, last time.Time
	for _, f := range r.Flux {
		if start.IsZero() || f.Seen.Before(start) {
			start = f.Seen
		}
		if f.Since.After(last) {
			last = f.Since
		}
	}
	for t, f := range r.Flux {
		s := Status{Object: t, Status: Ready, Message: redact.Text(rules.Readiness(f.Kind, f.Object).Message)}
		suspended := f.Suspended()
		switch {
		case suspended != nil:
			s.Status, s.Message = Suspended, suspended.Reason
			if suspended.Reason == "" {
				continue
			}
			report.NotTested = append(report.NotTested, Omission{s.Object, suspended.Reason, suspended.Intended})
		case !f.Kind.HasConditions():
			continue
		case f.Kind.IsReady(f.Object):
			s.After, s.Took = seconds(f.Since.Sub(start)), seconds(f.Since.Sub(f.Seen))
		case f.Kind.Pending(f.Object) || f.Kind.Ready(f.Object).Reason == "":
			s.Status = NotReconciled
		default:
			s.Status = NotReady
		}
		report.Objects = append(report.Objects, s)
	}
	statuses := []string{Ready, NotReady, NotReconciled, Suspended}
	slices.SortFunc(report.Objects, func(a, b Status) int {
		return cmp.Or(cmp.Compare(slices.Index(statuses, a.Status), slices.Index(statuses, b.Status)),
			cmp.Compare(a.After, b.After), strings.Compare(a.Object.String(), b.Object.String()))
	})
	for i := range report.Objects {
		if report.Objects[i].Status == Ready {
			report.Objects[i].Order = i + 1
		}
	}
	report.Seconds = seconds(max(last.Sub(start), 0))
	for ref := range r.Objects {
		if _, is := controllers.KindOf(ref.Group, ref.Kind); !is {
			report.Applied++
		}
	}
	slices.SortFunc(report.NotTested, func(a, b Omission) int { return strings.Compare(a.Object.String(), b.Object.String()) })
}

// seconds returns a duration with one decimal.
func seconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// sortedFlux returns the Flux objects in the order of their names.
func (r examination) sortedFlux() []controllers.ID {
	return slices.SortedFunc(maps.Keys(r.Flux), func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) })
}

// listCauses finds the root causes of what is not ready.
func (r examination) listCauses(ctx context.Context, report *Report) error {
	var failed []diagnose.Failed
	waiting := r.waiting()
	for _, t := range r.sortedFlux() {
		f := r.Flux[t]
		if f.Suspended() != nil || !f.Kind.HasConditions() || f.Kind.IsReady(f.Object) || waiting[t] != nil {
			continue
		}
		if r.Unsettled != nil && !f.Kind.Finished(f.Object) {
			report.Unknown = append(report.Unknown, redact.Text(inTime+t.String()+": "+rules.Readiness(f.Kind, f.Object).Message))
			continue
		}
		failed = append(failed, diagnose.Failed{ID: t, Last: f.Object})
	}
	if r.Unsettled != nil && len(report.Unknown) == 0 {
		report.Unknown = append(report.Unknown, inTime+"not all objects were created")
	}
	result := diagnose.Diagnoser{Client: r.Sandbox.Client, Home: r.Set.Namespace, Now: r.Now(), Kustomizer: r.Kustomizer}.Failed(ctx, failed)
	report.Unknown = append(report.Unknown, result.Unknown...)
	explained := map[controllers.ID]bool{}
	for _, found := range result.Causes {
		for _, t := range append([]controllers.ID{found.Object}, found.Also...) {
			explained[t] = true
		}
		if found.Root().Code == "recovered" {
			report.Unknown = append(report.Unknown, found.Object.String()+" became ready after the others were reconciled")
			continue
		}
		report.Causes = append(report.Causes, r.cause(ctx, found))
	}
	for _, t := range r.sortedFlux() {
		if waiting[t] != nil {
			report.block(t, *waiting[t])
		}
	}
	for _, f := range failed {
		if !explained[f.ID] {
			report.Causes = append(report.Causes, Cause{Object: f.ID, Message: redact.Text(rules.Readiness(r.Flux[f.ID].Kind, f.Last).Message), File: r.fileOf(ctx, f.ID)})
		}
	}
	return context.Cause(ctx)
}

// waiting returns the objects whose reconciliation waits for a failed object, and for which one.
func (r examination) waiting() map[controllers.ID]*controllers.ID {
	stuck := map[controllers.ID]bool{}
	for t, f := range r.Flux {
		stuck[t] = f.Suspended() == nil && f.Kind.HasConditions() && !f.Kind.IsReady(f.Object)
	}
	found := map[controllers.ID]*controllers.ID{}
	for t, f := range r.Flux {
		if stuck[t] && r.Unsettled == nil {
			found[t] = awaits(f, stuck)
		}
	}
	return found
}

// block adds an object to the cause for which another one is not ready.
func (p *Report) block(t, awaited controllers.ID) {
	for i, c := range p.Causes {
		if c.Object == awaited || slices.Contains(c.Blocks, awaited) {
			p.Causes[i].Blocks = append(p.Causes[i].Blocks, t)
			return
		}
	}
	p.Causes = append(p.Causes, Cause{Object: t, Message: "its health checks wait for " + awaited.String()})
}

// cause returns a root cause. Remedies that act on a cluster do not apply: the commit to fix is not
// deployed yet.
func (r examination) cause(ctx context.Context, found diagnose.Cause) Cause {
	c := Cause{Object: found.Root().Object, Code: found.Root().Code, Message: redact.Text(found.Root().Message)}
	for _, line := range found.Root().Details {
		c.Details = append(c.Details, redact.Text(line))
	}
	for _, remedy := range found.Root().Remedies() {
		if !strings.HasPrefix(remedy, "flux reconcile") {
			c.Remedies = append(c.Remedies, redact.Text(remedy))
		}
	}
	for _, t := range append([]controllers.ID{found.Object}, found.Also...) {
		if t != found.Root().Object {
			c.Blocks = append(c.Blocks, t)
		}
	}
	if c.Code == "decryption" && r.usesAgeKey(c.Object) {
		c.Remedies = []string{"name the file with the right age key: --age-key-file, or encrypt the values for the given one: sops updatekeys"}
	}
	if r.unreachable(found.Root()) {
		c.Message = "the sandbox has no network: " + c.Message
		c.Remedies = []string{
			"serve a directory in place of the source with --map, or fetch all sources with 'flux test vendor' and set --vendor",
			"if the repository may connect to other machines and to this one, set --allow-network",
		}
	}
	c.File = r.fileOf(ctx, c.Object)
	return c
}

// unreachable reports whether an object refers to a server outside of the sandbox, which has no network. A HelmChart refers
// to the servers of its dependencies.
func (r examination) unreachable(root *rules.Finding) bool {
	t := root.Object
	if r.Sandbox.Isolated && t.Kind == "HelmChart" && root.Code == "source-unreachable" {
		return true
	}
	if !r.Sandbox.Isolated || !slices.Contains([]string{"GitRepository", "HelmRepository", "OCIRepository", bucketKind, "ImageRepository"}, t.Kind) {
		return false
	}
	object := r.Flux[t].Object
	address := addressOf(object) + controllers.Path{"spec.image"}.String(object)
	served := []string{r.Sandbox.GitURL + "/", registry.Scheme + r.Sandbox.Registry + "/", r.Sandbox.Registry + "/"}
	if r.sources != nil {
		served = append(served, "http://"+r.sources.address+"/")
	}
	return !slices.ContainsFunc(served, func(server string) bool { return strings.HasPrefix(address, server) })
}

// usesAgeKey reports whether a Kustomization decrypts with a Secret that was created from AgeKey.
func (r examination) usesAgeKey(ref controllers.ID) bool {
	return slices.ContainsFunc(r.generated, func(n Need) bool {
		return r.AgeKey != "" && slices.Contains(n.Fields, decryptionField) && slices.Contains(n.NeededBy, ref)
	})
}

func (r examination) fileOf(ctx context.Context, ref controllers.ID) string {
	if r.Exported != nil {
		return ""
	}
	return r.Repository.FileOf(ctx, ref.Kind, ref.Name)
}
