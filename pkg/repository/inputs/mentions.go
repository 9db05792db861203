package inputs

import (
	"bytes"
	"index/suffixarray"
	"path"
	"slices"
	"strings"
)

// Mentions finds the paths that texts contain.
type Mentions struct {
	// all is set if the texts contain an address of the repository, or are too long to be searched.
	all   bool
	index *suffixarray.Index
	// folders caches whether the texts contain the path of a directory.
	folders map[string]bool
}

// maxMentions is the maximum length of the texts. The index requires five times as much memory.
const maxMentions = 8 << 20

// NewMentions returns the paths in texts. Texts that contain one of the remotes, the addresses of the repository, mention all files.
func NewMentions(texts [][]byte, remotes []string) *Mentions {
	text := bytes.Join(texts, []byte("\n"))
	if len(text) > maxMentions || slices.ContainsFunc(remotes, func(remote string) bool { return bytes.Contains(text, []byte(remote)) }) {
		return &Mentions{all: true}
	}
	return &Mentions{index: suffixarray.New(delimited(text)), folders: map[string]bool{}}
}

// Name reports whether the texts contain the path of a file.
func (m *Mentions) Name(file string) bool {
	return m.all || m.contains(bytes.TrimSuffix(delimited([]byte(file)), []byte{0}))
}

// Above reports whether the texts contain the path of a directory that contains a file. The path of a directory in the root of the
// repository begins with "./", and no path is the beginning of a longer one.
func (m *Mentions) Above(file string) bool {
	for folder := path.Dir(file); !m.all && folder != "."; folder = path.Dir(folder) {
		found, known := m.folders[folder]
		if !known {
			found = m.contains(delimited([]byte("./"+folder))) || strings.Contains(folder, "/") && m.contains(delimited([]byte(folder)))
			m.folders[folder] = found
		}
		if found {
			return true
		}
	}
	return m.all
}

func (m *Mentions) contains(text []byte) bool { return len(m.index.Lookup(text, 1)) > 0 }

// delimited returns a text with a NUL character in each place where a path may end.
func delimited(text []byte) []byte {
	result := make([]byte, 0, len(text)+len(text)/4)
	for i, c := range text {
		if pathEnds(text[i:]) {
			result = append(result, 0)
		}
		result = append(result, c)
	}
	return append(result, 0)
}

// pathEnds reports whether a path ends before a text, which may begin with the final slash of the path.
func pathEnds(text []byte) bool {
	rest := bytes.TrimPrefix(text, []byte("/"))
	return len(rest) == 0 || !bytes.ContainsAny(rest[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
}
