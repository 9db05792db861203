package controllers

import (
	"slices"
	"strings"
)

// abbreviations maps kinds without Short to the short names of their CRDs.
var abbreviations = map[string]string{
	"gitrepo": "GitRepository", "ocirepo": "OCIRepository", "helmrepo": "HelmRepository", "hc": "HelmChart",
	"ea": "ExternalArtifact", "ag": "ArtifactGenerator",
	"imgrepo": "ImageRepository", "imagerepo": "ImageRepository", "imgpol": "ImagePolicy", "imagepol": "ImagePolicy",
	"iua": "ImageUpdateAutomation", "imgupd": "ImageUpdateAutomation", "imgauto": "ImageUpdateAutomation",
}

// Words returns the names of the kind that users may enter, in lower case, with the preferred name
// first.
func (k Kind) Words() []string {
	singular := strings.ToLower(k.Kind)
	words := []string{k.Word, k.Plural, singular, k.Resource, k.Resource + "." + k.Group}
	if k.Short != "" {
		words = slices.Insert(words, 0, k.Short)
	}
	if k.Family != "" {
		words = append(words, k.Family+"/"+k.Word, k.Noun())
	}
	for short, kind := range abbreviations {
		if kind == k.Kind {
			words = append(words, short)
		}
	}
	slices.Sort(words[1:])
	return slices.Compact(words)
}

// KindsNamed returns the kinds with the given name, plural, short name or resource,
// ignoring case, or all kinds of a family such as "sources".
func KindsNamed(word string) []Kind {
	word = strings.ToLower(strings.TrimSpace(word))
	var rows []Kind
	for _, k := range Known {
		family := k.Family != "" && (word == k.Family || word == k.Family+"s")
		if family || slices.Contains(k.Words(), word) {
			rows = append(rows, k)
		}
	}
	return rows
}

// Indefinite returns a kind or noun with its indefinite article: "a Bucket", "an image policy".
func Indefinite(noun string) string {
	if noun != "" && strings.Contains("AEIOaeio", noun[:1]) {
		return "an " + noun
	}
	return "a " + noun
}
