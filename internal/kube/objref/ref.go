package objref

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Ref is a reference to an object: KIND NAME, KIND/NAME or KIND/NAMESPACE/NAME.
type Ref struct {
	// Word is the kind as the user wrote it.
	Word string
	// Kinds lists the Flux kinds that match Word. It is empty for other kinds.
	Kinds []controllers.Kind
	// Namespace is "" if the reference contains no namespace.
	Namespace, Name string
}

// Parse parses a reference of one or two words. It returns false if they are not
// a reference.
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

// notASegment reports whether a part is not a valid segment of a request path.
func notASegment(part string) bool {
	return part == "" || len(content.IsPathSegmentName(part)) > 0
}

// CutKind splits the parts of a reference into the kind, which may have two
// parts as in source/git, and the rest.
func CutKind(parts []string) (Ref, []string) {
	for length := len(parts) - 1; length > 0; length-- {
		word := strings.Join(parts[:length], "/")
		if kinds := controllers.KindsNamed(word); len(kinds) > 0 {
			return Ref{Word: word, Kinds: kinds}, parts[length:]
		}
	}
	return Ref{Word: parts[0]}, parts[1:]
}

// Kind returns the Flux kind of the reference, or an error unless exactly one
// matches.
func (r Ref) Kind() (controllers.Kind, error) {
	switch len(r.Kinds) {
	case 0:
		return controllers.Kind{}, UnknownWord(r.Word)
	case 1:
		return r.Kinds[0], nil
	}
	return controllers.Kind{}, hint.Errorf("use one of "+strings.Join(KindWords(r.Kinds), ", "), "%q matches several kinds", r.Word)
}

// NamespaceOr returns the namespace of the reference, or the given namespace if the reference contains none.
func (r Ref) NamespaceOr(namespace string) string { return cmp.Or(r.Namespace, namespace) }

// UnknownWord returns the error for a word that does not match a Flux kind.
func UnknownWord(word string) error { return UnknownKind(word, controllers.Known) }

// DidYouMean returns a hint with a Flux kind that is similar to an unknown word, or "".
func DidYouMean(word string) string {
	var suggestion *hint.Error
	if errors.As(UnknownWord(word), &suggestion) && strings.HasPrefix(suggestion.Hint, "did you mean") {
		return suggestion.Hint
	}
	return ""
}

// ParseArgs parses the arguments of a command as a reference. Without arguments
// it returns an empty reference.
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

// NotAnObject returns the error for words that are not a reference.
func NotAnObject(words string) error {
	return hint.Errorf("use KIND/NAME or KIND/NAMESPACE/NAME, such as ks/my-app", "%q is not a reference to an object", words)
}

// ParseCommandLine parses KIND/NAME, KIND NAME or, as with other commands, FAMILY
// KIND NAME such as "source git my-app". command is the command path for
// the hint.
func ParseCommandLine(command string, args []string) (Ref, error) {
	family := func(n int) bool { return len(args) == n && len(controllers.KindsNamed(args[0]+" "+args[1])) == 1 }
	switch {
	case family(2) && len(controllers.KindsNamed(args[0])) != 1:
		return Ref{}, hint.Errorf(fmt.Sprintf("%s %s %s NAME", command, args[0], args[1]), "a name is required")
	case len(args) == 3 && !family(3):
		return Ref{}, hint.Errorf("use KIND NAME or KIND/NAME", "%q is not a reference to an object", strings.Join(args, " "))
	case len(args) == 3:
		args = []string{args[0] + " " + args[1], args[2]}
	}
	return ParseArgs(args)
}

// CommandLines splits arguments of the form KIND/NAME… or KIND[,KIND…] NAME… into one list of arguments per object.
// With anyKind, other resource types of the cluster are also allowed.
func CommandLines(command string, args []string, anyKind bool) ([][]string, error) {
	if len(args) == 0 {
		return nil, hint.Errorf(command+" my-app", "a name is required")
	}
	words := strings.Split(args[0], ",")
	isKind := len(controllers.KindsNamed(words[0])) > 0
	var lines [][]string
	switch {
	case strings.Contains(args[0], "/") && !isKind:
		for _, arg := range args {
			lines = append(lines, []string{arg})
		}
		return lines, nil
	case len(args) == 1:
		return [][]string{args}, nil
	case !anyKind && !isKind && len(words) == 1 && DidYouMean(args[0]) == "":
		return nil, hint.Errorf("use KIND/NAME for several resources: "+command+" ks/"+strings.Join(args, " ks/"), "'%s' is not a recognized Flux kind", args[0])
	case len(args) < 3 && len(words) == 1, len(controllers.KindsNamed(args[0]+" "+args[1])) > 0:
		return [][]string{args}, nil
	}
	for _, name := range args[1:] {
		for _, word := range words {
			lines = append(lines, []string{word, name})
		}
	}
	return lines, nil
}
