// Package examine determines the result of a run: root causes, missing Secrets, objects with several owners or none, and
// API server warnings.
package examine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/settle"
	"github.com/fluxkit/flux/pkg/testrun/stub"
)

// Undetermined is the result of a run without failures but with unknown results. The other results are settle.Ready,
// and settle.NotReady if an object is not ready, two owners apply an object differently, or an assertion has failed.
const Undetermined = "undetermined"

// Cause is the root cause of objects that are not ready.
type Cause struct {
	Object  controllers.ID `json:"object"`
	Code    string         `json:"code,omitempty"`
	Message string         `json:"message"`
	// Details are quoted conditions, events and logs.
	Details []string `json:"details,omitempty"`
	// File is the file with the manifest, if only one has it.
	File string `json:"file,omitempty"`
	// Remedies lists fixes. If a remedy contains a command, it ends with the command.
	Remedies []string `json:"remedies,omitempty"`
	// Blocks lists other objects that are not ready for the same cause.
	Blocks []controllers.ID `json:"blocks,omitempty"`
}

// Conflict is an object that more than one Kustomization or HelmRelease applies.
type Conflict struct {
	Object controllers.ID   `json:"object"`
	Owners []controllers.ID `json:"owners"`
	// Fields lists the fields that the owners set to different values, so that each owner reverts the other.
	Fields []string `json:"fields,omitempty"`
	// Differs reports whether the owners apply different contents. Each reverts the other.
	Differs bool   `json:"differs"`
	File    string `json:"file,omitempty"`
}

// Orphan is an object with the labels of an owner whose inventory does not contain it.
type Orphan struct {
	Object controllers.ID `json:"object"`
	Owner  controllers.ID `json:"owner"`
	// OwnerDeleted is set if the owner no longer exists, such as a Kustomization that does not prune.
	OwnerDeleted bool `json:"ownerDeleted,omitempty"`
}

// Deprecation is an API server warning about an object's manifest.
type Deprecation struct {
	Object  controllers.ID `json:"object"`
	Message string         `json:"message"`
	File    string         `json:"file,omitempty"`
}

// Report is the result of a run.
type Report struct {
	Flux   string `json:"flux"`
	Path   string `json:"path,omitempty"`
	Result string `json:"result"`
	// Seconds is the duration of the reconciliations.
	Seconds float64 `json:"seconds"`
	// Objects lists the Flux objects in the order in which they became ready. Applied is the number of
	// other objects that they have applied.
	Objects []settle.Status `json:"objects"`
	Applied int             `json:"applied"`
	Causes  []Cause         `json:"causes"`
	// Missing lists the Secrets and ConfigMaps that exist neither in Git nor in the sandbox. Generated
	// lists the ones that were created with generated values.
	Missing    []stub.Need       `json:"missing"`
	Generated  []stub.Need       `json:"generated,omitempty"`
	Conflicts  []Conflict        `json:"conflicts"`
	Orphans    []Orphan          `json:"orphans"`
	Deprecated []Deprecation     `json:"deprecated"`
	NotTested  []settle.Omission `json:"notTested"`
	// Unmatched lists the mappings that no source has used. It is empty if a root cause prevents the creation of sources.
	Unmatched []mapped.Mapping `json:"unmatched,omitempty"`
	Unknown   []string         `json:"unknown"`
	// Ignored lists the controller arguments that the sandbox ignores, with the reasons.
	Ignored     []string     `json:"ignoredArguments,omitempty"`
	Controllers []Controller `json:"controllers"`
	// Timeline is set if the head was pushed after a base.
	Timeline *testrun.Timeline `json:"timeline,omitempty"`
	// Tests are the results of the assertions in test files.
	Tests []assert.Result `json:"tests,omitempty"`

	// ofBase is set if the report is about the base, because it was not reconciled in time.
	ofBase bool
}

// AddTests adds the results of test files.
func (p *Report) AddTests(results []assert.Result) {
	p.Tests = results
	p.conclude()
}

// Controller is a controller of the sandbox.
type Controller struct {
	Name string `json:"name"`
	// Wanted is the controller version in the Flux version, and Ran the version that ran.
	Wanted string `json:"wanted"`
	Ran    string `json:"ran"`
}

// Run examines the objects that a run has read. Checks that exceed the time limit are listed as unknown.
func Run(ctx context.Context, r *testrun.Run) (*Report, error) {
	ctx, cancel := testrun.Reading(ctx)
	defer cancel()
	r.Progress("examining the result")
	report := &Report{
		Flux: r.Distribution.Version, Path: r.Repository.Path, Causes: []Cause{}, Missing: []stub.Need{}, Conflicts: []Conflict{},
		Orphans: []Orphan{}, Deprecated: []Deprecation{}, Unknown: []string{}, Generated: r.Generated, Timeline: r.Timeline,
	}
	for _, name := range r.Repository.Components {
		report.Controllers = append(report.Controllers, Controller{name, r.Distribution.Tags[name], r.Versions[name]})
	}
	if r.OperatorCRDs != nil {
		ran := r.Versions[controllers.OperatorName]
		report.Controllers = append(report.Controllers, Controller{controllers.OperatorName, ran, ran})
	}
	report.Objects, report.NotTested, report.Seconds = settle.Statuses(r.Flux)
	for ref := range r.Objects {
		if _, is := controllers.KindOf(ref.Group, ref.Kind); !is {
			report.Applied++
		}
		if reason := simulated(ref, r.OperatorCRDs != nil); reason != "" {
			report.NotTested = append(report.NotTested, settle.Omission{Object: ref, Reason: reason, Intended: !ref.IsResourceSet()})
		}
	}
	slices.SortFunc(report.NotTested, func(a, b settle.Omission) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	if report.ofBase = r.Head != nil && r.Timeline == nil; report.ofBase {
		report.Unknown = append(report.Unknown, "the head: the base "+r.Base+" was not reconciled in time")
	}
	e := examination{r}
	for _, step := range []struct {
		about string
		list  func(context.Context, *Report) error
	}{
		{"root causes", e.listCauses}, {"missing Secrets and ConfigMaps", e.listMissing}, {"objects with several owners", e.listConflicts},
		{"orphaned objects", e.listOrphans}, {"API server warnings", e.listDeprecated}, {"controller arguments", e.listIgnored},
	} {
		if err := report.unread(step.about, step.list(ctx, report)); err != nil {
			return nil, fmt.Errorf("examining the result: %w", err)
		}
	}
	if len(report.Causes)+len(report.Unknown) == 0 {
		report.Unmatched = r.Sources.Unused(r.Flux)
	}
	report.conclude()
	return report, nil
}

// simulated returns why an object of flux-operator is not tested, "" for other objects. If the operator does not run, the
// objects of a ResourceSet are missing.
func simulated(ref controllers.ID, operated bool) string {
	switch {
	case ref.IsFluxInstance():
		return "the sandbox installs Flux itself, with the minor version, components, multi-tenancy settings and patches of the spec"
	case ref.Group == controllers.OperatorGroup && !operated:
		return "flux-operator is not installed in the directory of flux-sandbox"
	}
	return ""
}

// unread lists a check that timed out as unknown. It returns any other error.
func (p *Report) unread(about string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	p.Unknown = append(p.Unknown, "timed out reading: "+about)
	return nil
}

// Count returns the number of ready objects, and the number of objects to reconcile.
func (p *Report) Count() (ready, all int) {
	for _, s := range p.Objects {
		if s.Status == settle.Ready {
			ready++
		}
		if s.Status != settle.Suspended {
			all++
		}
	}
	return ready, all
}

// conclude sets the result, and shortens messages.
func (p *Report) conclude() {
	p.Result = settle.Ready
	for _, o := range p.NotTested {
		if !o.Intended {
			p.Result = Undetermined
		}
	}
	if len(p.Unknown) > 0 || len(p.Objects) == 0 || p.outcomes(assert.Undetermined) {
		p.Result = Undetermined
	}
	failed := slices.ContainsFunc(p.Objects, func(s settle.Status) bool { return s.Status == settle.NotReady || s.Status == settle.NotReconciled })
	differs := slices.ContainsFunc(p.Conflicts, func(c Conflict) bool { return c.Differs })
	if !p.ofBase && (len(p.Causes) > 0 || failed && !p.unsettled() || differs || p.outcomes(assert.Failed)) {
		p.Result = settle.NotReady
	}
	budget.ShortenTexts(p)
}

// outcomes reports whether an assertion has an outcome.
func (p *Report) outcomes(o assert.Outcome) bool {
	return slices.ContainsFunc(p.Tests, func(r assert.Result) bool { return r.Outcome == o })
}

// unsettled reports whether the run timed out before all objects were reconciled.
func (p *Report) unsettled() bool {
	return slices.ContainsFunc(p.Unknown, func(line string) bool { return strings.HasPrefix(line, inTime) })
}

// inTime is the prefix of the lines about objects that were still being reconciled.
const inTime = "not reconciled in time: "

// listCauses finds the root causes of the objects that are not ready.
func (r examination) listCauses(ctx context.Context, report *Report) error {
	var failed []diagnose.Failed
	waiting := r.waiting()
	for _, t := range r.sortedFlux() {
		f := r.Flux[t]
		if !f.Failed() || waiting[t] != nil {
			continue
		}
		if r.Unsettled != nil && !f.Stuck() {
			report.Unknown = append(report.Unknown, redact.Text(inTime+t.String()+": "+f.Failure()))
			continue
		}
		failed = append(failed, diagnose.Failed{ID: t, Last: f.Object})
	}
	if r.Unsettled != nil && len(report.Unknown)+len(failed) == 0 {
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
			report.Causes = append(report.Causes, Cause{Object: f.ID, Message: redact.Text(r.Flux[f.ID].Failure()), File: r.fileOf(ctx, f.ID)})
		}
	}
	return context.Cause(ctx)
}

// listIgnored lists the controller arguments that the sandbox ignores.
func (r examination) listIgnored(ctx context.Context, report *Report) (err error) {
	_, report.Ignored, err = r.Sandbox.Controllers(ctx)
	return err
}

// listMissing lists the Secrets and ConfigMaps that failed objects are still missing.
func (r examination) listMissing(ctx context.Context, report *Report) error {
	var failing []settle.Flux
	for _, t := range r.sortedFlux() {
		if f := r.Flux[t]; f.Failed() {
			failing = append(failing, f)
		}
	}
	missing, err := r.Provider().Missing(ctx, failing)
	for _, n := range missing {
		report.Missing = append(report.Missing, *n)
	}
	return err
}

// waiting maps each object whose reconciliation waits for a failed object to the first object of the chain.
func (r examination) waiting() map[controllers.ID]*controllers.ID {
	stuck := map[controllers.ID]bool{}
	for t, f := range r.Flux {
		stuck[t] = f.Failed() && (r.Unsettled == nil || f.Stuck())
	}
	found := map[controllers.ID]*controllers.ID{}
	for before := -1; before != len(found); {
		before = len(found)
		for _, t := range r.sortedFlux() {
			f := r.Flux[t]
			if found[t] != nil || !f.Failed() {
				continue
			}
			by := settle.Awaits(f, stuck)
			if by == nil && r.Unsettled != nil && f.Kind.Pending(f.Object) {
				needs := slices.Concat(f.Kind.Upstream(f.Object), f.Kind.DependenciesOf(f.Object))
				if i := slices.IndexFunc(needs, func(id controllers.ID) bool { return stuck[id] }); i >= 0 {
					by = &needs[i]
				}
			}
			if by != nil {
				found[t], stuck[t] = by, true
			}
		}
	}
	for t, by := range found {
		for range found { // bounded, because there may be a cycle
			if found[*by] != nil {
				by = found[*by]
			}
		}
		found[t] = by
	}
	return found
}

// block adds an object to the root cause of the object that it waits for.
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
		c.Remedies = []string{"set --age-key-file to the matching age key, or encrypt the values for the given key: sops updatekeys"}
	}
	if c.Code == "api-missing" {
		c.Remedies = r.committing(c)
	}
	if r.unreachable(found.Root()) {
		c.Message = "the sandbox has no network: " + c.Message
		c.Remedies = []string{
			"serve a directory in place of the source with --map, or fetch all sources with 'flux test vendor' and set --vendor",
			"set --allow-network if the controllers may connect to other machines and to this one",
		}
	}
	c.File = r.fileOf(ctx, c.Object)
	return c
}

// committing returns the remedies for a kind that is not served. A CRD that is installed by other means is missing in the
// sandbox, and the Kustomization of the cluster's directory cannot depend on a Kustomization that it applies.
func (r examination) committing(c Cause) []string {
	root := slices.ContainsFunc(r.Initial(), func(o *unstructured.Unstructured) bool { return controllers.IDOf(o.Object) == c.Object })
	var all []string
	for _, remedy := range c.Remedies {
		if strings.Contains(remedy, rules.InstallCRD) {
			remedy = strings.Replace(remedy, rules.InstallCRD, "commit the CRD of ", 1) + ": the sandbox only contains CRDs of Flux and of the repository"
		}
		if root {
			remedy = strings.Replace(remedy, rules.DependOnCRD+c.Object.String(),
				"move the objects of this kind to another Kustomization that depends on the one with the CRD", 1)
		}
		all = append(all, remedy)
	}
	return all
}

// unreachable reports whether an object refers to a server outside of the sandbox, which has no network. A HelmChart refers
// to the servers of its dependencies.
func (r examination) unreachable(root *rules.Finding) bool {
	k := r.Flux[root.Object].Kind
	switch {
	case !r.Sandbox.Isolated:
		return false
	case k.Kind == controllers.HelmChart:
		return root.Code == "source-unreachable"
	}
	return k.Fetch.Address != "" && k.HasConditions() && !r.Sources.Has(r.Flux[root.Object].Object)
}

// usesAgeKey reports whether a Kustomization decrypts with a Secret that was created from AgeKey.
func (r examination) usesAgeKey(ref controllers.ID) bool {
	return slices.ContainsFunc(r.Generated, func(n stub.Need) bool {
		return r.AgeKey != "" && slices.Contains(n.Fields, stub.DecryptionField) && slices.Contains(n.NeededBy, ref)
	})
}
