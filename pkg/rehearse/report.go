package rehearse

import (
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// The results of a rehearsal.
const (
	// Same means that the rehearsed objects do not differ.
	Same = "same"
	// Different means that objects change, fail or must be migrated.
	Different = "different"
	// Undetermined means that nothing differs, but that some objects could not be rehearsed.
	Undetermined = "undetermined"
)

// Level is the consequence of a finding.
type Level string

// The levels, from the most to the least important one.
const (
	// Breaks is a feature that works with the current version but not with the next one.
	Breaks Level = "breaks"
	// Migrate is an object or file that must be migrated before upgrading to a later version.
	Migrate Level = "migrate"
	// Changes is another difference.
	Changes Level = "changes"
	// Notice is a difference without an effect on existing objects.
	Notice Level = "notice"
)

// Finding is a difference between the two versions.
type Finding struct {
	Level Level `json:"level"`
	// Rule identifies the type of the finding: not-ready, field-removed, rejected, not-served,
	// deprecated, default, inventory, event or ready.
	Rule    string                  `json:"rule"`
	Object  controllers.VersionedID `json:"object"`
	Message string                  `json:"message"`
	// File is the file with the manifest, if only one has it.
	File string `json:"file,omitempty"`
	// Remedies lists fixes. If a remedy contains a command, it ends with the command.
	Remedies []string `json:"remedies,omitempty"`
	// Also lists other objects with the same cause.
	Also []controllers.ID `json:"also,omitempty"`
}

// Controller is a controller of the next version.
type Controller struct {
	Name string `json:"name"`
	// From and To are the controller versions of the two Flux versions, and Ran the version that
	// ran in both sandboxes.
	From string `json:"from"`
	To   string `json:"to"`
	Ran  string `json:"ran"`
	// Exact reports whether the version of To ran.
	Exact bool `json:"exact"`
	// Unknown describes the results that are unknown because another version ran.
	Unknown string `json:"unknown,omitempty"`
}

// Report is the result of a rehearsal.
type Report struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Path   string `json:"path,omitempty"`
	Result string `json:"result"`
	// Objects is the number of compared objects.
	Objects     int          `json:"objects"`
	Findings    []Finding    `json:"findings"`
	Controllers []Controller `json:"controllers"`
	// NotRehearsed lists the objects that could not be rehearsed.
	NotRehearsed []settle.Omission `json:"notRehearsed"`
	// Changes lists the objects that differ, grouped by owner.
	Changes []*diff.Result `json:"changes"`
	// Unsettled lists the objects that were not reconciled in time.
	Unsettled []string `json:"unsettled,omitempty"`
}

// conclude sets the result, and shortens messages. Changes of fields keep their values.
func (r *Report) conclude() {
	r.Result = Same
	for _, o := range r.NotRehearsed {
		if !o.Intended {
			r.Result = Undetermined
		}
	}
	for _, f := range r.Findings {
		if f.Level != Notice {
			r.Result = Different
		}
	}
	for _, c := range r.Changes {
		if c.Different() {
			r.Result = Different
		}
	}
	if len(r.Unsettled) > 0 {
		r.Result = Undetermined
	}
	for _, messages := range []any{r.Findings, r.Controllers, r.NotRehearsed, r.Unsettled} {
		budget.ShortenTexts(messages)
	}
}
