package main

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/fluxkit/flux/pkg/controllers"
)

// objectRef is an object as people write it: KIND NAME, KIND/NAME or, as tables
// show references, KIND/NAMESPACE/NAME.
type objectRef struct {
	// word is the kind as it was written, and kinds the rows that it may mean:
	// none where it is no word of Flux.
	word  string
	kinds []controllers.Kind
	// namespace is "" where none was written.
	namespace, name string
}

// readObject reads an object from one or two words; false says that they name none.
func readObject(args []string) (objectRef, bool) {
	parts := strings.Split(args[0], "/")
	if len(args) == 2 {
		r := objectRef{word: args[0], kinds: controllers.KindsNamed(args[0]), name: args[1]}
		return r, (len(parts) == 1 || len(r.kinds) > 0) && args[0] != "" && !notASegment(args[1])
	}
	r, rest := cutKind(parts)
	switch len(rest) {
	case 1:
		r.name = rest[0]
	case 2:
		r.namespace, r.name = rest[0], rest[1]
	}
	return r, r.name != "" && !slices.ContainsFunc(parts, notASegment)
}

// notASegment reports whether a part would lead elsewhere in the path of a request.
func notASegment(part string) bool {
	return part == "" || len(content.IsPathSegmentName(part)) > 0
}

// cutKind takes the kind off the parts between slashes: "source/git" is a word, too.
func cutKind(parts []string) (objectRef, []string) {
	for length := len(parts) - 1; length > 0; length-- {
		word := strings.Join(parts[:length], "/")
		if kinds := controllers.KindsNamed(word); len(kinds) > 0 {
			return objectRef{word: word, kinds: kinds}, parts[length:]
		}
	}
	return objectRef{word: parts[0]}, parts[1:]
}

// kind is the one kind of Flux that the word means.
func (r objectRef) kind() (controllers.Kind, error) {
	switch len(r.kinds) {
	case 0:
		return controllers.Kind{}, unknownSubject(r.word)
	case 1:
		return r.kinds[0], nil
	}
	return controllers.Kind{}, hinted("name one of "+strings.Join(kindWords(r.kinds), ", "), "%q means several kinds", r.word)
}

// in is the namespace of the object, the given one where none was written.
func (r objectRef) in(namespace string) string { return orElse(r.namespace, namespace) }

func unknownSubject(word string) error { return unknownKind(word, controllers.Kinds) }

// objectWords reads an object from the words of a command line, and none where
// there are no words.
func objectWords(args []string) (objectRef, error) {
	if len(args) == 0 {
		return objectRef{}, nil
	}
	r, ok := readObject(args)
	if !ok {
		return r, notAnObject(strings.Join(args, " "))
	}
	return r, nil
}

func notAnObject(words string) error {
	return hinted("write KIND/NAME or KIND/NAMESPACE/NAME, such as ks/my-app", "%q names no object", words)
}

// fluxObject reads an object of Flux from the words of a command line; its name
// is "" where there are no words.
func fluxObject(args []string) (controllers.Kind, objectRef, error) {
	r, err := objectWords(args)
	if err != nil || r.name == "" {
		return controllers.Kind{}, r, err
	}
	k, err := r.kind()
	return k, r, err
}
