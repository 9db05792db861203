package logs

import (
	"hash/maphash"
	"time"
)

// overlap is the number of seconds before the last line at which a broken stream is reopened. The
// API takes whole seconds, and lines of stdout and stderr may be written slightly out of order.
const overlap = 1

// seen records the lines of the last seconds by time and text, to recognize them in a reopened
// stream.
type seen struct {
	seed    maphash.Seed
	seconds map[int64]map[mark]int
	newest  int64
	// again holds the lines that a reopened stream repeats.
	again map[mark]int
}

type mark struct {
	at   int64
	hash uint64
}

func newSeen() *seen {
	return &seen{seed: maphash.MakeSeed(), seconds: map[int64]map[mark]int{}}
}

// since returns the time from which a stream must be reopened, zero for the beginning.
func (s *seen) since() time.Time {
	if s.newest == 0 {
		return time.Time{}
	}
	return time.Unix(s.newest-overlap, 0)
}

// reopened marks the recorded lines as lines that the stream repeats.
func (s *seen) reopened() {
	s.again = map[mark]int{}
	for _, marks := range s.seconds {
		for m, n := range marks {
			s.again[m] += n
		}
	}
}

// fresh reports whether a line is new, and records it.
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
		return true // too old to be repeated
	}
	if s.seconds[second] == nil {
		s.seconds[second] = map[mark]int{}
	}
	s.seconds[second][m]++
	return true
}
