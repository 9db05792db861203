package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/fluxkit/flux/internal/budget"
)

const (
	// maxChain is the maximum number of deltas from which an object is restored. By default, Git creates at most 50.
	maxChain = 4096
	// keptMax is the maximum size of the objects that a pack keeps in memory as bases of other objects.
	keptMax = 16 << 20
)

// packs reads packed objects, and the declared sizes of all objects without inflating them. go-git inflates an object, its delta
// and all bases of the delta before it returns the size, and a gigabyte of zeros takes only a megabyte in a pack. It also reads and
// sorts the whole index of a pack first.
type packs struct {
	dir    *dotgit.DotGit
	packs  []*pack
	others []*packs // the alternates of the repository
}

// openPacks opens the packs of a Git directory and of its alternates.
func openPacks(data billy.Filesystem) (*packs, error) {
	s := &packs{dir: dotgit.NewWithOptions(data, dotgit.Options{AlternatesFS: osfs.New("/")})}
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
		other, err := openPacks(lender.Fs())
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.others = append(s.others, other)
	}
	return s, nil
}

func (s *packs) close() error {
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.close())
	}
	for _, other := range s.others {
		errs = append(errs, other.close())
	}
	return errors.Join(errs...)
}

// size returns the size of an object, or plumbing.ErrObjectNotFound. The error is a
// budget.ExceededError if the object, or one that must be inflated for it, is too large to be read.
func (s *packs) size(hash plumbing.Hash) (size int64, err error) {
	p, offset, err := s.find(hash)
	if err != nil {
		return 0, err
	}
	if p != nil {
		return p.size(hash, offset)
	}
	if size, err = s.loose(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
		return size, errors.Join(err, tooLarge(hash, size))
	}
	for _, other := range s.others {
		if size, err = other.size(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return size, err
		}
	}
	return 0, plumbing.ErrObjectNotFound
}

// find returns the pack of an object and its offset, nil if it is in no pack of the Git directory itself.
func (s *packs) find(hash plumbing.Hash) (p *pack, offset int64, err error) {
	for _, p := range s.packs {
		offset, err = p.index.find(hash)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return p, offset, err
		}
	}
	return nil, 0, nil
}

// object returns a packed object, or plumbing.ErrObjectNotFound. The error is a budget.ExceededError if the object, or one that must be
// inflated for it, is too large to be read.
func (s *packs) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	p, offset, err := s.find(hash)
	if err != nil {
		return nil, err
	}
	if p != nil {
		if !p.small[offset] {
			if _, err := p.size(hash, offset); err != nil {
				return nil, err
			}
		}
		found, err := p.object(offset)
		if err != nil {
			return nil, fmt.Errorf("reading object %s: %w", hash, err)
		}
		return &encoded{hash, found}, nil
	}
	for _, other := range s.others {
		if found, err := other.object(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return found, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// tooLarge returns an error for an object that must not be read.
func tooLarge(hash plumbing.Hash, size int64) error {
	if size <= budget.TreeFile {
		return nil
	}
	return budget.TooLarge("Git object "+hash.String(), "the object", budget.TreeFile)
}

// loose returns the size of a loose object.
func (s *packs) loose(hash plumbing.Hash) (int64, error) {
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
	index   *packIndex
	entries *packfile.Scanner
	// small holds the offsets of objects that can be read without inflating a large object.
	small map[int64]bool
	// kept caches objects by offset, because many objects have the same bases.
	kept     map[int64]inflated
	keptSize int
}

// inflated is an object with all deltas applied.
type inflated struct {
	kind    plumbing.ObjectType
	content []byte
}

func openPack(dir *dotgit.DotGit, hash plumbing.Hash) (*pack, error) {
	// Open separate files, because go-git closes shared ones.
	data := dir.Fs()
	name := data.Join("objects", "pack", "pack-"+hash.String())
	index, err := openIndex(data, name+".idx")
	if err != nil {
		return nil, err
	}
	p := &pack{index: index, small: map[int64]bool{}, kept: map[int64]inflated{}}
	if p.file, err = data.Open(name + ".pack"); err != nil {
		return nil, errors.Join(err, index.file.Close())
	}
	p.entries = packfile.NewScanner(p.file)
	return p, nil
}

func (p *pack) close() error { return errors.Join(p.file.Close(), p.index.file.Close()) }

// size returns the size of the object at an offset. The error is a budget.ExceededError if the object, or one that must be inflated
// for it, is too large to be read.
func (p *pack) size(hash plumbing.Hash, offset int64) (int64, error) {
	size, largest, err := p.sizes(offset)
	if err != nil {
		return 0, fmt.Errorf("reading the size of object %s: %w", hash, err)
	}
	return size, tooLarge(hash, largest)
}

// object returns the object at an offset, whose size has been checked.
func (p *pack) object(offset int64) (inflated, error) {
	type delta struct {
		offset int64
		text   []byte
	}
	var deltas []delta
	found, size := inflated{}, 0
	for {
		var known bool
		if found, known = p.kept[offset]; known {
			break
		}
		header, err := p.entries.SeekObjectHeader(offset)
		if err != nil {
			return found, err
		}
		var text bytes.Buffer
		if _, _, err := p.entries.NextObject(&text); err != nil {
			return found, err
		}
		if int64(text.Len()) != header.Length {
			return found, io.ErrUnexpectedEOF
		}
		if !header.Type.IsDelta() {
			found = inflated{header.Type, text.Bytes()}
			p.keep(offset, found)
			break
		}
		deltas = append(deltas, delta{offset, text.Bytes()})
		if size += text.Len(); size > budget.TreeFile {
			return found, budget.TooLarge("", "all deltas of the object", budget.TreeFile)
		}
		if offset, err = p.base(header); err != nil {
			return found, err
		}
	}
	for _, d := range slices.Backward(deltas) {
		content, err := packfile.PatchDelta(found.content, d.text)
		if err != nil {
			return found, err
		}
		found.content = content
		p.keep(d.offset, found)
	}
	return found, nil
}

// keep caches an object, unless it is large.
func (p *pack) keep(offset int64, found inflated) {
	if len(found.content) > keptMax/16 {
		return
	}
	if p.keptSize += len(found.content); p.keptSize > keptMax {
		clear(p.kept)
		p.keptSize = len(found.content)
	}
	p.kept[offset] = found
}

// base returns the offset of the base of a delta.
func (p *pack) base(header *packfile.ObjectHeader) (int64, error) {
	if header.Type == plumbing.REFDeltaObject {
		return p.index.find(header.Reference)
	}
	return header.OffsetReference, nil
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
		if isDelta && err == nil {
			offset, err = p.base(header)
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
