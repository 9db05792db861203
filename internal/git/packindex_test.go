package git

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
)

// indexed returns an index with an offset for each hash.
func indexed(offsets map[plumbing.Hash]uint64) []byte {
	hashes := make([]plumbing.Hash, 0, len(offsets))
	for hash := range offsets {
		hashes = append(hashes, hash)
	}
	slices.SortFunc(hashes, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	text := []byte("\xfftOc\x00\x00\x00\x02")
	for first := range 256 {
		before, _ := slices.BinarySearchFunc(hashes, first+1, func(h plumbing.Hash, next int) int { return int(h[0]) - next })
		text = binary.BigEndian.AppendUint32(text, uint32(before))
	}
	for _, hash := range hashes {
		text = append(text, hash[:]...)
	}
	text = append(text, make([]byte, 4*len(hashes))...)
	var wide []byte
	for _, hash := range hashes {
		offset := offsets[hash]
		if offset >= 1<<31 {
			wide = binary.BigEndian.AppendUint64(wide, offset)
			offset = 1<<31 + uint64(len(wide)/8-1)
		}
		text = binary.BigEndian.AppendUint32(text, uint32(offset))
	}
	return append(append(text, wide...), make([]byte, 40)...)
}

// open opens an index with a content.
func open(t *testing.T, content []byte) (*packIndex, error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "x.idx"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	index, err := openIndex(osfs.New(folder), "x.idx")
	if err == nil {
		t.Cleanup(func() { _ = index.file.Close() })
	}
	return index, err
}

func hashOf(text string) (hash plumbing.Hash) {
	sum := sha256.Sum256([]byte(text))
	copy(hash[:], sum[:])
	return hash
}

// TestPackIndex finds all objects of indexes, and no others. Hashes with the same beginning are not near the expected place.
func TestPackIndex(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(n int, h *plumbing.Hash){
		"even":           func(int, *plumbing.Hash) {},
		"same beginning": func(_ int, h *plumbing.Hash) { copy(h[:], bytes.Repeat([]byte{7}, 10)) },
		"two groups": func(n int, h *plumbing.Hash) {
			if h[0] = 9; n%100 > 0 {
				h[1], h[2] = 0xff, 0xff
			}
		},
		"first and last": func(n int, h *plumbing.Hash) { h[0] = byte(n%2) * 0xff },
	} {
		for _, count := range []int{0, 1, 2, 127, 128, 129, 5000} {
			t.Run(fmt.Sprintf("%s, %d", name, count), func(t *testing.T) {
				t.Parallel()
				offsets := map[plumbing.Hash]uint64{}
				for n := range count {
					hash := hashOf(fmt.Sprint(n))
					change(n, &hash)
					offsets[hash] = uint64(n+1) << (n % 50)
				}
				index, err := open(t, indexed(offsets))
				if err != nil {
					t.Fatal(err)
				}
				for hash, want := range offsets {
					if got, err := index.find(hash); err != nil || uint64(got) != want {
						t.Fatalf("%s: %d, want %d: %v", hash, got, want, err)
					}
				}
				for n := range 1000 {
					hash := hashOf(fmt.Sprint("absent", n))
					change(n, &hash)
					if _, known := offsets[hash]; known {
						continue
					}
					if _, err := index.find(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
						t.Fatalf("%s: %v", hash, err)
					}
				}
			})
		}
	}
}

// TestInvalidPackIndex opens indexes that are damaged, and searches those that can be opened.
func TestInvalidPackIndex(t *testing.T) {
	t.Parallel()
	hash := hashOf("x")
	valid := indexed(map[plumbing.Hash]uint64{hash: 12, hashOf("y"): 1 << 40})
	changed := func(at int, with ...byte) []byte {
		return append(append(slices.Clone(valid[:at]), with...), valid[at+len(with):]...)
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"valid":               {valid, "<nil>"},
		"empty":               {nil, "reading x.idx: EOF"},
		"version 1":           {valid[8:], "reading x.idx: the index of the pack does not have version 2: run git repack -a -d"},
		"version 3":           {changed(7, 3), "reading x.idx: the index of the pack does not have version 2: run git repack -a -d"},
		"short":               {valid[:len(valid)-60], "reading x.idx: the index of the pack is invalid"},
		"odd":                 {valid[:len(valid)-1], "reading x.idx: the index of the pack is invalid"},
		"decreasing":          {changed(8, 0, 0, 0, 9), "reading x.idx: the index of the pack is invalid"},
		"too many":            {changed(8+4*255, 0xff, 0xff, 0xff, 0xff), "reading x.idx: the index of the pack is invalid"},
		"wide offset missing": {changed(indexHeader+24*2, 0xff, 0, 0, 7, 0xff, 0, 0, 7), "the index of the pack is invalid"},
		"negative offset":     {changed(indexHeader+24*2, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0xff), "the index of the pack is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index, err := open(t, c.content)
			if err == nil {
				_, err = index.find(hash)
			}
			if got := fmt.Sprint(err); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
