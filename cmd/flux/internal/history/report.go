package history

import (
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/controllers"
)

// historyReport is the JSON and YAML output.
type historyReport struct {
	Object  controllers.ID `json:"object"`
	History []entryReport  `json:"history"`
}

type entryReport struct {
	Revision       string      `json:"revision,omitempty"`
	OriginRevision string      `json:"originRevision,omitempty"`
	Status         string      `json:"status"`
	Succeeded      bool        `json:"succeeded"`
	StartedAt      *time.Time  `json:"startedAt,omitempty"`
	Duration       string      `json:"duration,omitempty"`
	FirstAt        *time.Time  `json:"firstAt,omitempty"`
	Runs           int         `json:"runs,omitempty"`
	Digest         string      `json:"digest,omitempty"`
	Commit         *git.Commit `json:"commit,omitempty"`
	Release        string      `json:"release,omitempty"`
	Chart          string      `json:"chart,omitempty"`
	AppVersion     string      `json:"appVersion,omitempty"`
	Action         string      `json:"action,omitempty"`
}

func (s subject) report() historyReport {
	r := historyReport{Object: s.target.Named(), History: []entryReport{}}
	for _, e := range s.entries {
		entry := entryReport{
			Revision: e.Revision, OriginRevision: e.Origin, Status: e.Status, Succeeded: e.Succeeded,
			StartedAt: report.TimeOrNil(e.Started()), Duration: report.Duration(e.Took), FirstAt: report.TimeOrNil(e.First), Runs: e.Runs,
			Digest: e.Digest, Release: e.Release, Chart: e.Chart, AppVersion: e.AppVersion, Action: e.Action,
		}
		if c, found := s.commits[commitOf(e)]; found {
			entry.Commit = &c
		}
		r.History = append(r.History, entry)
	}
	return r
}
