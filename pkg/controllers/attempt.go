package controllers

import "strings"

// Attempt is where an object says what of its source its controller last
// worked on.
type Attempt struct {
	// Of is the kind of source, "" for all.
	Of string
	// Path holds the revision as the source's artifact has it.
	Path Path
	// Digest says that Path holds only what follows the revision's "@".
	Digest bool
}

// Tried tells whether the controller of an object has worked on a revision of
// its source, or does not tell what it worked on.
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
		return attempted == digest || attempted == "" // older controllers do not tell
	}
	return true
}
