package reconcile

import (
	"time"

	"github.com/fluxkit/flux/internal/hint"
)

// Expiration returns the time of the value of --until, a time or a duration, in RFC 3339, or "" without one.
func Expiration(value string, now time.Time) (string, error) {
	if value == "" {
		return "", nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		after, err := time.ParseDuration(value)
		if err != nil {
			return "", hint.Errorf("use a time such as 2026-12-01T08:00:00Z, or a duration such as 2h30m", "invalid --until %q", value)
		}
		at = now.Add(after + time.Second - 1).Truncate(time.Second)
	}
	if !at.After(now) {
		return "", hint.Errorf("set a later time", "--until %s is not in the future", value)
	}
	return at.UTC().Format(time.RFC3339), nil
}
