package controllers

import "strings"

// Attempt is the field of a kind that holds the attempted revision of a source.
type Attempt struct {
	// Of is the kind of source, or "" for every kind.
	Of string
	// Path holds the revision in the format of the source's artifact.
	Path Path
	// Digest is set if Path holds only the part after "@".
	Digest bool
}

// Tried reports whether the controller has attempted a revision of the source.
// It returns true if the kind does not record attempts.
func (k Kind) Tried(o Object, source Kind, revision string) bool {
	for _, a := range k.Attempts {
		if a.Of != "" && a.Of != source.Kind {
			continue
		}
		attempted := a.Path.String(o)
		if !a.Digest {
			return attempted == revision
		}
		_, digest, _ := strings.Cut(revision, "@")
		return attempted == digest || attempted == "" // older controllers do not record the digest
	}
	return true
}
