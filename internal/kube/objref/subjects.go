package objref

import (
	"errors"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Subjects selects the objects of events and logs: named objects, or all objects
// of some kinds. Empty Subjects select everything.
type Subjects struct {
	Objects []Ref
	Kinds   []controllers.Kind
}

// ParseSubjects parses --for or the arguments of a command: KIND/NAME…,
// KIND[,KIND…] NAME… or KIND[,KIND…].
func ParseSubjects(flag string, words []string) (Subjects, error) {
	switch {
	case flag != "" && len(words) > 0:
		return Subjects{}, errors.New("objects and --for are mutually exclusive")
	case flag != "":
		r, ok := Parse([]string{flag})
		if !ok {
			return Subjects{}, hint.Errorf("use KIND/NAME, as in --for Kustomization/my-app or --for hr/my-app", "--for %q is not of the form KIND/NAME", flag)
		}
		return Subjects{Objects: []Ref{r}}, unambiguous(r)
	case len(words) == 0:
		return Subjects{}, nil
	case strings.Contains(words[0], "/") && len(controllers.KindsNamed(words[0])) == 0:
		return subjectObjects(strings.Split(strings.Join(words, ","), ","))
	}
	kinds, names := strings.Split(words[0], ","), words[1:]
	if len(names) == 0 {
		return subjectKinds(kinds)
	}
	var all Subjects
	for _, name := range names {
		for _, kind := range kinds {
			if err := all.add(kind, name); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func subjectObjects(words []string) (Subjects, error) {
	var all Subjects
	for _, word := range words {
		if err := all.add(word); err != nil {
			return all, err
		}
	}
	return all, nil
}

// add adds the object that words specify.
func (s *Subjects) add(words ...string) error {
	r, ok := Parse(words)
	if !ok {
		return NotAnObject(strings.Join(words, " "))
	}
	s.Objects = append(s.Objects, r)
	return unambiguous(r)
}

func subjectKinds(words []string) (Subjects, error) {
	var all Subjects
	for _, word := range words {
		called := controllers.KindsNamed(word)
		if len(called) == 0 && DidYouMean(word) == "" {
			return all, hint.Errorf("use KIND/NAME for an object, such as ks/"+word, "'%s' is not a recognized Flux kind", word)
		}
		if len(called) == 0 {
			return all, UnknownWord(word)
		}
		all.Kinds = append(all.Kinds, called...)
	}
	return all, nil
}

// unambiguous returns an error for a word that matches several Flux kinds. Words
// that match no Flux kind may be other resource types of the cluster.
func unambiguous(r Ref) error {
	if len(r.Kinds) > 1 {
		_, err := r.Kind()
		return err
	}
	return nil
}

// Targets returns the objects, or an error if one is not a Flux object.
func (s Subjects) Targets(namespace string) ([]Target, error) {
	var all []Target
	for _, r := range s.Objects {
		k, err := r.Kind()
		if err != nil {
			return nil, err
		}
		all = append(all, Target{Kind: k, Namespace: r.NamespaceOr(namespace), Name: r.Name})
	}
	return all, nil
}
