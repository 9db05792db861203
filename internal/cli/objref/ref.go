package objref

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Ref is an object as people write it: KIND NAME, KIND/NAME or, as tables
// show references, KIND/NAMESPACE/NAME.
type Ref struct {
	// Word is the kind as it was written, and kinds the rows that it may mean:
	// none where it is no word of Flux.
	Word  string
	Kinds []controllers.Kind
	// Namespace is "" where none was written.
	Namespace, Name string
}

// Parse reads an object from one or two words; false says that they name none.
func Parse(args []string) (Ref, bool) {
	parts := strings.Split(args[0], "/")
	if len(args) == 2 {
		r := Ref{Word: args[0], Kinds: controllers.KindsNamed(args[0]), Name: args[1]}
		return r, (len(parts) == 1 || len(r.Kinds) > 0) && args[0] != "" && !notASegment(args[1])
	}
	r, rest := CutKind(parts)
	switch len(rest) {
	case 1:
		r.Name = rest[0]
	case 2:
		r.Namespace, r.Name = rest[0], rest[1]
	}
	return r, r.Name != "" && !slices.ContainsFunc(parts, notASegment)
}

// notASegment reports whether a part would lead elsewhere in the path of a request.
func notASegment(part string) bool {
	return part == "" || len(content.IsPathSegmentName(part)) > 0
}

// CutKind takes the kind off the parts between slashes: "source/git" is a word, too.
func CutKind(parts []string) (Ref, []string) {
	for length := len(parts) - 1; length > 0; length-- {
		word := strings.Join(parts[:length], "/")
		if kinds := controllers.KindsNamed(word); len(kinds) > 0 {
			return Ref{Word: word, Kinds: kinds}, parts[length:]
		}
	}
	return Ref{Word: parts[0]}, parts[1:]
}

// Kind is the one kind of Flux that the word means.
func (r Ref) Kind() (controllers.Kind, error) {
	switch len(r.Kinds) {
	case 0:
		return controllers.Kind{}, UnknownWord(r.Word)
	case 1:
		return r.Kinds[0], nil
	}
	return controllers.Kind{}, clierr.WithHint("name one of "+strings.Join(KindWords(r.Kinds), ", "), "%q means several kinds", r.Word)
}

// NamespaceOr is the namespace of the object, the given one where none was written.
func (r Ref) NamespaceOr(namespace string) string { return cmp.Or(r.Namespace, namespace) }

// UnknownWord returns the error for a word that is no kind of Flux.
func UnknownWord(word string) error { return UnknownKind(word, controllers.Kinds) }

// ParseArgs reads an object from the words of a command line, and none where
// there are no words.
func ParseArgs(args []string) (Ref, error) {
	if len(args) == 0 {
		return Ref{}, nil
	}
	r, ok := Parse(args)
	if !ok {
		return r, NotAnObject(strings.Join(args, " "))
	}
	return r, nil
}

// NotAnObject returns the error for words that name no object.
func NotAnObject(words string) error {
	return clierr.WithHint("write KIND/NAME or KIND/NAMESPACE/NAME, such as ks/my-app", "%q names no object", words)
}

// ParseFluxObject reads an object of Flux from the words of a command line; its name
// is "" where there are no words.
func ParseFluxObject(args []string) (controllers.Kind, Ref, error) {
	r, err := ParseArgs(args)
	if err != nil || r.Name == "" {
		return controllers.Kind{}, r, err
	}
	k, err := r.Kind()
	return k, r, err
}

// ParseCommandLine reads an object from the words of a command line: KIND/NAME,
// KIND NAME or, as after other verbs, the family and the word of a kind and NAME.
func ParseCommandLine(cmd *cobra.Command, args []string) (Ref, error) {
	family := func(n int) bool { return len(args) == n && len(controllers.KindsNamed(args[0]+" "+args[1])) == 1 }
	switch {
	case family(2) && len(controllers.KindsNamed(args[0])) != 1:
		return Ref{}, clierr.WithHint(fmt.Sprintf("%s %s %s NAME", cmd.CommandPath(), args[0], args[1]), "a name is required")
	case len(args) == 3 && !family(3):
		return Ref{}, clierr.WithHint("write KIND NAME or KIND/NAME", "%q names no object", strings.Join(args, " "))
	case len(args) == 3:
		args = []string{args[0] + " " + args[1], args[2]}
	}
	return ParseArgs(args)
}
