package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/lazy"
)

const (
	// shortest is the minimum length of secrets that are masked everywhere. Shorter secrets may
	// occur in other text by chance and are masked only as whole words in messages.
	shortest = 8
	// leastWord is the minimum length of secrets that are masked as whole words. Shorter strings are too common.
	leastWord = 6
)

// Set holds the known secrets of a process, in the forms in which a server may return them. The
// zero value is an empty set.
type Set struct {
	mu    sync.RWMutex
	forms []string // longest first
	words []*regexp.Regexp
	known map[string]bool
	all   *strings.Replacer
}

// Add adds secrets.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		if s.known[secret] || len(secret) < leastWord || secret == Mask {
			continue
		}
		if s.known == nil {
			s.known = map[string]bool{}
		}
		s.known[secret] = true
		if len(secret) < shortest && utf8.ValidString(secret) { // a regular expression matches valid UTF-8 only
			s.words = append(s.words, regexp.MustCompile(`(^|[^\pL\pN_-])`+regexp.QuoteMeta(secret)+`($|[^\pL\pN_-])`))
			continue
		}
		s.forms = append(s.forms, formsOf(secret)...)
	}
	slices.SortFunc(s.forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.forms = slices.Compact(s.forms)
	pairs := make([]string, 0, 2*len(s.forms))
	for _, form := range s.forms {
		pairs = append(pairs, form, Mask)
	}
	s.all = strings.NewReplacer(pairs...)
}

// formsOf returns the encodings of a secret: plain, base64, URL and JSON. For a multi-line
// secret such as a key, it includes each long line.
func formsOf(secret string) []string {
	forms := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
	if quoted, err := json.Marshal(secret); err == nil {
		forms = append(forms, strings.Trim(string(quoted), `"`))
	}
	const line = 20
	if strings.Contains(secret, "\n") {
		for l := range strings.Lines(secret) {
			if l = strings.TrimSpace(l); len(l) >= line && !strings.HasPrefix(l, "---") {
				forms = append(forms, l)
			}
		}
	}
	return forms
}

// AddLogin adds the password of a user, and the user and password as encoded for HTTP basic authentication.
func (s *Set) AddLogin(user, password string) {
	if password == "" {
		return
	}
	s.Add(password)
	if len(password) >= leastWord {
		s.Add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
	}
}

// AddURL adds the credentials in the user information and the query of a URL.
func (s *Set) AddURL(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	if u.User != nil {
		password, both := u.User.Password()
		switch {
		case both:
			s.AddLogin(u.User.Username(), password)
		case u.Scheme != "ssh":
			s.AddLogin(u.User.Username(), u.User.Username())
		}
	}
	for name, values := range u.Query() {
		if Named(name) {
			s.Add(values...)
		}
	}
}

// AddHeader adds the credentials in the headers of a request.
func (s *Set) AddHeader(h http.Header) {
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Private-Token", "X-Gitlab-Token", "Cookie"} {
		for _, value := range h[name] {
			if s.knows(value) {
				continue
			}
			scheme, rest, _ := strings.Cut(value, " ")
			if strings.EqualFold(scheme, "Basic") {
				if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
					user, password, _ := strings.Cut(string(plain), ":")
					s.AddLogin(user, password)
				}
			}
			s.Add(value, rest)
		}
	}
}

func (s *Set) knows(secret string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[secret]
}

// Text masks the secrets of the set in a message, in addition to those that the function Text
// masks.
func (s *Set) Text(text string) string {
	text = s.mask(Text(text))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, word := range s.words {
		text = word.ReplaceAllString(text, "${1}"+Mask+"${2}")
	}
	return text
}

func (s *Set) mask(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.all == nil {
		return text
	}
	return s.all.Replace(text)
}

// Transport returns a transport that adds the credentials of requests to the set before the server
// can return them.
func (s *Set) Transport(next http.RoundTripper) http.RoundTripper { return &transport{s, next} }

type transport struct {
	set  *Set
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.set.AddHeader(r.Header)
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper returns the wrapped transport to client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// NewWriter returns a writer that masks the secrets of the set, including secrets that are split across writes. It
// must be the last writer before the stream, which Unwrap returns. Flush writes retained text.
func (s *Set) NewWriter(w io.Writer) *Writer { return &Writer{set: s, w: w} }

// Writer masks secrets.
type Writer struct {
	set *Set
	w   io.Writer

	mu   sync.Mutex
	held string
}

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.set.mask(w.held + string(p))
	keep := w.set.begun(text)
	w.held = text[len(text)-keep:]
	if _, err := io.WriteString(w.w, text[:len(text)-keep]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes retained text that looks like the beginning of a secret.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = ""
	if held == "" {
		return nil
	}
	_, err := io.WriteString(w.w, held)
	return err
}

// Unwrap returns the wrapped writer, for programs that replace this process and for terminal
// checks.
func (w *Writer) Unwrap() io.Writer { return w.w }

// begun returns the length of the longest suffix of a text that is the beginning of a secret.
func (s *Set) begun(text string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	longest := 0
	for _, form := range s.forms {
		for n := min(len(form)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, form[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// credentialNames matches credential names, or suffixes of such names, in query parameters,
// environment variables and flags.
const credentialNames = `(?:access[-_]?token|token|password|passwd|pwd|passphrase|secret|secret[-_]?key|secret[-_]?access[-_]?key|client[-_]?secret|private[-_]?token|api[-_]?key|apikey|age[-_]?key|sig|signature|credentials?|creds|security[-_]?token|pat)`

var credentialName = lazy.Regexp(`(?i)(?:^|[-_.])` + credentialNames + `$`)

// Named reports whether a name is a credential name.
func Named(name string) bool { return credentialName().MatchString(name) }
