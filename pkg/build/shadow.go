package build

import (
	"context"
	"errors"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Shadow records the secret values that a build reads. The build is then repeated with placeholders
// for them and without reading anything again: values that differ are derived from a secret value.
// It is safe for concurrent use.
type Shadow struct {
	mu sync.Mutex
	// Repeating is set in the second build.
	Repeating bool
	// Secret is set if the build has read a secret value.
	Secret bool
	// Indirect is set if an object that the build depends on is derived from a secret value.
	Indirect bool
	// Values holds the values of the Secrets that templates have looked up.
	Values []string
	data   map[controllers.ID]dataRead
	clear  map[string]clearRead
	found  map[Wanted]foundRead
}

type dataRead struct {
	data, twin map[string][]byte
	err        error
}

type clearRead struct {
	clear, twin []byte
	err         error
}

type foundRead struct{ object, twin map[string]any }

// NewShadow returns a shadow for the build of an owner. The twin of the owner is nil unless its
// definition is derived from a secret value.
func NewShadow(twin *unstructured.Unstructured) *Shadow {
	return &Shadow{
		Secret: twin != nil, Indirect: twin != nil,
		data: map[controllers.ID]dataRead{}, clear: map[string]clearRead{}, found: map[Wanted]foundRead{},
	}
}

// read records the twin that Object.Depend passes for the read in progress.
type read struct{ twin *unstructured.Unstructured }

type readKey struct{}

// Depend records that a build reads the object, for a Lookup or a finder of sources that gets the
// context from the build. Without it, an object that is derived from secret values would be treated
// as public.
func (o Object) Depend(ctx context.Context) {
	if r, ok := ctx.Value(readKey{}).(*read); ok && o.Twin != nil {
		r.twin = o.Twin
	}
}

// Data returns the data of a ConfigMap or a Secret for a Lookup, or an EncryptedError.
func (o Object) Data(ctx context.Context) (map[string][]byte, error) {
	o.Depend(ctx)
	return ReadData(o.Unstructured)
}

// Lookup returns a lookup that records what it reads. Nil remains nil.
func (s *Shadow) Lookup(from Lookup) Lookup {
	if from == nil {
		return nil
	}
	return LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		known, ok := s.data[object]
		if !ok && s.Repeating {
			known, ok = dataRead{err: ErrNotFound}, true // a reference that differs in the second build
		}
		if !ok {
			known = s.readData(ctx, from, object)
			s.data[object] = known
		}
		if s.Repeating {
			return known.twin, known.err
		}
		return known.data, known.err
	})
}

func (s *Shadow) readData(ctx context.Context, from Lookup, object controllers.ID) dataRead {
	var noted read
	found := dataRead{}
	found.data, found.err = from.Data(context.WithValue(ctx, readKey{}, &noted), object)
	found.twin = found.data
	switch {
	case object.Kind == controllers.Secret:
		found.twin = map[string][]byte{}
		for key, value := range found.data {
			found.twin[key] = []byte(placeholder.Of(string(value)))
			s.Secret = true
		}
	case noted.twin != nil:
		s.Secret = true
		if twin, err := ReadData(noted.twin); err == nil {
			found.twin = twin
		}
	}
	return found
}

// decrypter returns a decrypter that records what it decrypts. Nil remains nil.
func (s *Shadow) decrypter(from Decrypter) Decrypter {
	if from == nil {
		return nil
	}
	return recordingDecrypter{s, from}
}

type recordingDecrypter struct {
	*Shadow
	from Decrypter
}

// Decrypt implements Decrypter.
func (d recordingDecrypter) Decrypt(ctx context.Context, name string, document []byte, format string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := format + " " + string(document)
	known, ok := d.clear[key]
	if !ok && d.Repeating {
		return nil, ErrNoKey
	}
	if !ok {
		known.clear, known.err = d.from.Decrypt(ctx, name, document, format)
		if known.err == nil {
			d.Secret = true
			known.twin = placeholder.Document(document, known.clear, format)
		}
		d.clear[key] = known
	}
	if d.Repeating {
		return known.twin, known.err
	}
	return known.clear, known.err
}

// decrypted reports whether the build has decrypted a document.
func (s *Shadow) decrypted() bool {
	for _, read := range s.clear {
		if read.err == nil {
			return true
		}
	}
	return false
}

// Finder returns a finder that records what templates look up. Nil remains nil.
func (s *Shadow) Finder(from Finder) Finder {
	if from == nil {
		return nil
	}
	return func(ctx context.Context, wanted Wanted) (map[string]any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		known, ok := s.found[wanted]
		if !ok && !s.Repeating {
			object, err := from(ctx, wanted)
			if err != nil {
				return nil, err
			}
			known = foundRead{object, s.foundTwin(object)}
			s.found[wanted] = known
		}
		if s.Repeating {
			return known.twin, nil
		}
		return known.object, nil
	}
}

// Find returns a function that records the objects that it finds. The second build finds those that are derived from secret
// values with other values. Nil remains nil.
func (s *Shadow) Find(from func(context.Context, controllers.ID) (*unstructured.Unstructured, error)) func(context.Context, controllers.ID) (*unstructured.Unstructured, error) {
	if from == nil {
		return nil
	}
	type found struct {
		object, twin *unstructured.Unstructured
		err          error
	}
	known := map[controllers.ID]found{}
	return func(ctx context.Context, object controllers.ID) (*unstructured.Unstructured, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f, ok := known[object]
		if !ok && s.Repeating {
			return nil, ErrNotFound // a reference that differs in the second build
		}
		if !ok {
			var noted read
			f.object, f.err = from(context.WithValue(ctx, readKey{}, &noted), object)
			if f.twin = noted.twin; f.twin != nil {
				s.Secret, s.Indirect = true, true
			}
			known[object] = f
		}
		if s.Repeating && f.twin != nil {
			return f.twin, f.err
		}
		return f.object, f.err
	}
}

// foundTwin returns an object or a list as a template finds it in the second build: with
// placeholders for the data of Secrets.
func (s *Shadow) foundTwin(found map[string]any) map[string]any {
	twin := (&unstructured.Unstructured{Object: found}).DeepCopy().Object
	items, listed := twin["items"].([]any)
	if !listed {
		items = []any{twin}
	}
	kind, _ := twin["kind"].(string)
	for _, item := range items {
		m, _ := item.(map[string]any)
		if m == nil || strings.TrimSuffix(kind, "List") != controllers.Secret {
			continue
		}
		if data, err := DataOf(&unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": m["data"]}}); err == nil {
			for _, value := range data {
				if len(value) > 0 {
					s.Values = append(s.Values, string(value))
				}
			}
		}
		s.Secret = true
		for _, field := range []string{"data", "stringData"} {
			if m[field] != nil {
				m[field] = placeholder.Values(m[field], nil)
			}
		}
	}
	return twin
}

// hiddenError is an error whose text is derived from a secret value.
const hiddenError = "the message is derived from a secret value and is not shown"

// Hide returns an error without its text, which is derived from a secret value.
func Hide(err error) error { return &discreetError{err, hiddenError} }

// Discreet returns an error without text that is derived from a secret value: the part of the text
// that it has in common with the error of the second build.
func (s *Shadow) Discreet(err, again error, secrets []string) error {
	if !s.Secret || err == nil {
		return err
	}
	text := err.Error()
	if again != nil && again.Error() == text {
		return WithoutValues(err, secrets)
	}
	common := 0
	if again != nil {
		for other := again.Error(); common < min(len(text), len(other)) && text[common] == other[common]; {
			common++
		}
	}
	// If two words differ in any character, all their characters are secret.
	common = strings.LastIndexAny(text[:common], " \n") + 1
	return &discreetError{err, WithoutValues(errors.New(text[:common]+hiddenError), secrets).Error()}
}
