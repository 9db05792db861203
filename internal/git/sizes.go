package git

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/fluxkit/flux/internal/budget"
)

// maxChain is the maximum number of deltas from which an object is restored. By default, Git creates at most 50.
const maxChain = 4096

// sizes reads the declared sizes of objects without inflating them. go-git inflates an object, its delta and all
// bases of the delta before it returns the size, and a gigabyte of zeros takes only a megabyte in a pack.
type sizes struct {
	dir    *dotgit.DotGit
	packs  []*pack
	others []*sizes // the alternates of the repository
}

// openSizes opens the packs of a Git directory and of its alternates.
func openSizes(data billy.Filesystem) (*sizes, error) {
	s := &sizes{dir: dotgit.NewWithOptions(data, dotgit.Options{AlternatesFS: osfs.New("/")})}
	hashes, err := s.dir.ObjectPacks()
	if err != nil {
		return nil, fmt.Errorf("listing the packs of the Git repository: %w", err)
	}
	for _, hash := range hashes {
		p, err := openPack(s.dir, hash)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening pack %s of the Git repository: %w", hash, err), s.close())
		}
		s.packs = append(s.packs, p)
	}
	lenders, err := s.dir.Alternates()
	if err != nil {
		return s, nil //nolint:nilerr // go-git reads nothing from repositories that it cannot find, either
	}
	for _, lender := range lenders {
		other, err := openSizes(lender.Fs())
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.others = append(s.others, other)
	}
	return s, nil
}

func (s *sizes) close() error {
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.file.Close())
	}
	for _, other := range s.others {
		errs = append(errs, other.close())
	}
	return errors.Join(errs...)
}

// of returns the size of an object, or plumbing.ErrObjectNotFound. The error is a
// budget.ExceededError if the object, or one that must be inflated for it, is too large to be read.
func (s *sizes) of(hash plumbing.Hash) (size int64, err error) {
	largest := int64(0)
	for _, p := range s.packs {
		offset, missing := p.index.FindOffset(hash)
		if missing != nil {
			continue
		}
		if size, largest, err = p.sizes(offset); err != nil {
			return 0, fmt.Errorf("reading the size of object %s: %w", hash, err)
		}
		return size, tooLarge(hash, largest)
	}
	if size, err = s.loose(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
		return size, errors.Join(err, tooLarge(hash, size))
	}
	for _, other := range s.others {
		if size, err = other.of(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return size, err
		}
	}
	return 0, plumbing.ErrObjectNotFound
}

// tooLarge returns an error for an object that must not be read.
func tooLarge(hash plumbing.Hash, size int64) error {
	if size <= budget.TreeFile {
		return nil
	}
	return budget.TooLarge("Git object "+hash.String(), "the object", budget.TreeFile)
}

// loose returns the size of a loose object.
func (s *sizes) loose(hash plumbing.Hash) (int64, error) {
	file, err := s.dir.Object(hash)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, plumbing.ErrObjectNotFound
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // opened read-only
	reader, err := objfile.NewReader(file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = reader.Close() }()
	_, size, err := reader.Header()
	return size, err
}

// pack is an open pack.
type pack struct {
	file    billy.File
	index   *idxfile.MemoryIndex
	entries *packfile.Scanner
	// small holds the offsets of objects that can be read without inflating a large object.
	small map[int64]bool
}

func openPack(dir *dotgit.DotGit, hash plumbing.Hash) (*pack, error) {
	list, err := dir.ObjectPackIdx(hash)
	if err != nil {
		return nil, err
	}
	p := &pack{index: idxfile.NewMemoryIndex(), small: map[int64]bool{}}
	err = idxfile.NewDecoder(bufio.NewReader(list)).Decode(p.index)
	if err := errors.Join(err, list.Close()); err != nil {
		return nil, err
	}
	// Open a separate file, because go-git closes shared ones.
	data := dir.Fs()
	if p.file, err = data.Open(data.Join("objects", "pack", "pack-"+hash.String()+".pack")); err != nil {
		return nil, err
	}
	p.entries = packfile.NewScanner(p.file)
	return p, nil
}

// sizes returns the size of the object at an offset, and the largest size that must be inflated for it, including its
// delta and the bases with their deltas. It stops at the first size that is too large.
func (p *pack) sizes(offset int64) (size, largest int64, err error) {
	var chain []int64
	for range maxChain {
		if len(chain) > 0 && p.small[offset] {
			p.remember(chain)
			return size, largest, nil
		}
		chain = append(chain, offset)
		header, err := p.entries.SeekObjectHeader(offset)
		if err != nil {
			return 0, 0, err
		}
		restored, isDelta := header.Length, header.Type.IsDelta()
		if isDelta {
			restored, err = p.restored()
		}
		if header.Type == plumbing.REFDeltaObject {
			offset, err = p.index.FindOffset(header.Reference)
		} else if isDelta {
			offset = header.OffsetReference
		}
		if err != nil {
			return 0, 0, err
		}
		if len(chain) == 1 {
			size = restored
		}
		largest = max(largest, restored, header.Length)
		if largest > budget.TreeFile {
			return size, largest, nil
		}
		if !isDelta {
			p.remember(chain)
			return size, largest, nil
		}
	}
	return 0, 0, fmt.Errorf("the delta chain is longer than %d", maxChain)
}

func (p *pack) remember(chain []int64) {
	for _, offset := range chain {
		p.small[offset] = true
	}
}

// restored returns the size of the object that the delta at the current position restores: the
// second number at the beginning of the delta.
func (p *pack) restored() (int64, error) {
	var begin beginning
	if _, _, err := p.entries.NextObject(&begin); err != nil && !errors.Is(err, errBegun) {
		return 0, err
	}
	_, n := binary.Uvarint(begin.text)
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, n := binary.Uvarint(begin.text[n:])
	if n <= 0 || int64(size) < 0 {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}

// errBegun stops the inflation of a delta once its beginning has been read.
var errBegun = errors.New("the beginning is sufficient")

// beginning keeps the first bytes that are written to it.
type beginning struct{ text []byte }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), 2*binary.MaxVarintLen64-len(b.text))]...)
	if len(b.text) == 2*binary.MaxVarintLen64 {
		return 0, errBegun
	}
	return len(p), nil
}
