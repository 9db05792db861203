package decrypt

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/keyservice"
	"google.golang.org/grpc"

	"github.com/fluxkit/flux/internal/secrets/sops"
)

// requestTime is the maximum time of a request to a key service, including all attempts to find credentials.
const requestTime = 15 * time.Second

// service decrypts data keys with the keys of a Secret or, without them, with the credentials in the
// environment of the process.
type service struct {
	ctx context.Context // the library does not pass a context
	// env returns environment variables. The library reads the environment directly.
	env  func(string) string
	keys sops.Keys
	// sum is a hash that identifies the keys.
	sum        [sha256.Size]byte
	identities age.ParsedIdentities
	ring       openpgp.EntityList
	known      *failures
	// groups maps encrypted data keys to the numbers of their key groups.
	groups map[string]int
	// failures lists the errors of key services for a document.
	failures []string
}

var _ keyservice.KeyServiceClient = (*service)(nil)

func (d *documents) newService(ctx context.Context, keys sops.Keys) (*service, error) {
	encoded, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	s := &service{ctx: ctx, env: d.env, keys: keys, sum: sha256.Sum256(encoded), known: &d.known}
	for _, text := range keys.Age {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "AGE-SECRET-KEY-") {
				continue
			}
			if s.identities.Import(line) != nil { // the error may contain the key
				return nil, errors.New("malformed age key")
			}
		}
	}
	for _, text := range keys.PGP {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
		if err != nil {
			return nil, errors.New("malformed OpenPGP key")
		}
		s.ring = append(s.ring, entities...)
	}
	return s, nil
}

// Encrypt implements keyservice.KeyServiceClient.
func (s *service) Encrypt(context.Context, *keyservice.EncryptRequest, ...grpc.CallOption) (*keyservice.EncryptResponse, error) {
	return nil, errors.New("encryption is not supported")
}

// Decrypt implements keyservice.KeyServiceClient.
func (s *service) Decrypt(_ context.Context, r *keyservice.DecryptRequest, _ ...grpc.CallOption) (*keyservice.DecryptResponse, error) {
	ctx, cancel := context.WithTimeout(s.ctx, requestTime)
	defer cancel()
	var key []byte
	var err error
	switch k := r.GetKey().GetKeyType().(type) {
	case *keyservice.Key_AgeKey:
		key, err = s.age(k.AgeKey.GetRecipient(), r.GetCiphertext())
	case *keyservice.Key_PgpKey:
		key, err = s.pgp(ctx, k.PgpKey.GetFingerprint(), r.GetCiphertext())
	default:
		key, err = s.remote(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return &keyservice.DecryptResponse{Plaintext: key}, nil
}

// remote calls a key service unless it has already failed for the same key and credentials.
func (s *service) remote(ctx context.Context, r *keyservice.DecryptRequest) ([]byte, error) {
	name, ask := s.keyService(r)
	id := fmt.Sprintf("%s %x", name, s.sum)
	failure := s.known.get(id)
	if failure == "" {
		key, err := ask(ctx)
		switch {
		case err == nil:
			return key, nil
		case s.ctx.Err() != nil:
			return nil, context.Cause(s.ctx)
		case ctx.Err() != nil:
			err = fmt.Errorf("no response within %s", requestTime)
		}
		failure = firstLine(err)
		s.known.set(id, failure)
	}
	s.fail(name, r.GetCiphertext(), failure)
	return nil, errors.New(failure)
}

// fail records the reason why a key in the document cannot decrypt its data key.
func (s *service) fail(name string, sealed []byte, failure string) {
	s.failures = append(s.failures, fmt.Sprintf("%s (key group %d): %s", name, s.groups[string(sealed)], failure))
}

// failures caches the errors of key services.
type failures struct {
	mu   sync.Mutex
	seen map[string]string
}

func (f *failures) get(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[id]
}

func (f *failures) set(id, failure string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]string{}
	}
	f.seen[id] = failure
}
