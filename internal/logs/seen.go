package logs

import (
	"hash/maphash"
	"time"
)

// overlap is how many seconds before the last line a broken stream is opened anew. The
// API takes whole seconds, and a container's two output streams may reach its
// log a little out of order.
const overlap = 1

// seen remembers the lines of the last seconds, so that they are known when
// they come again. Lines are told apart by their time and their text.
type seen struct {
	seed    maphash.Seed
	seconds map[int64]map[mark]int
	newest  int64
	// again are the lines that come once more after a stream was opened anew.
	again map[mark]int
}

type mark struct {
	at   int64
	hash uint64
}

func newSeen() *seen {
	return &seen{seed: maphash.MakeSeed(), seconds: map[int64]map[mark]int{}}
}

// since is where a stream has to be opened to miss nothing, zero for the beginning.
func (s *seen) since() time.Time {
	if s.newest == 0 {
		return time.Time{}
	}
	return time.Unix(s.newest-overlap, 0)
}

// reopened makes the remembered lines ones that come again.
func (s *seen) reopened() {
	s.again = map[mark]int{}
	for _, marks := range s.seconds {
		for m, n := range marks {
			s.again[m] += n
		}
	}
}

// fresh tells whether a line has not come yet, and remembers it.
func (s *seen) fresh(l line) bool {
	m := mark{l.at.UnixNano(), maphash.Bytes(s.seed, l.text)}
	if s.again[m] > 0 {
		s.again[m]--
		return false
	}
	second := l.at.Unix()
	if second > s.newest {
		s.newest = second
		for old := range s.seconds {
			if old < second-overlap {
				delete(s.seconds, old)
			}
		}
	}
	if second < s.newest-overlap {
		return true // too old to come again
	}
	if s.seconds[second] == nil {
		s.seconds[second] = map[mark]int{}
	}
	s.seconds[second][m]++
	return true
}
