package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sort"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// packIndex finds the offsets of objects in a pack. It reads only the parts of the index that it needs: the index of a large clone
// has hundreds of thousands of entries. See gitformat-pack(5) for the format.
type packIndex struct {
	file billy.File
	// before holds, for each first byte of a hash, the number of objects whose hashes begin with this or a smaller byte.
	before [256]uint32
	// wide is the number of entries in the table of offsets that do not fit into 31 bits.
	wide int64
}

// The parts of an index of version 2: a header with before, the hashes, checksums and offsets of the objects, the wide offsets, and
// two checksums.
const (
	indexHeader = 8 + 4*256
	perObject   = 20 + 4 + 4
	indexEnd    = 2 * 20
)

var errInvalidIndex = errors.New("the index of the pack is invalid")

// openIndex opens the index of a pack.
func openIndex(data billy.Filesystem, name string) (*packIndex, error) {
	info, err := data.Stat(name)
	if err != nil {
		return nil, err
	}
	i := &packIndex{}
	if i.file, err = data.Open(name); err != nil {
		return nil, err
	}
	if err := i.readHeader(info.Size()); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", name, err), i.file.Close())
	}
	return i, nil
}

func (i *packIndex) readHeader(size int64) error {
	header := make([]byte, indexHeader)
	if _, err := i.file.ReadAt(header, 0); err != nil {
		return err
	}
	if !bytes.HasPrefix(header, []byte("\xfftOc\x00\x00\x00\x02")) {
		return errors.New("the index of the pack does not have version 2: run git repack -a -d")
	}
	for n := range i.before {
		i.before[n] = binary.BigEndian.Uint32(header[8+4*n:])
		if n > 0 && i.before[n] < i.before[n-1] {
			return errInvalidIndex
		}
	}
	rest := size - indexHeader - perObject*i.count() - indexEnd
	if i.wide = rest / 8; rest < 0 || rest%8 != 0 {
		return errInvalidIndex
	}
	return nil
}

func (i *packIndex) count() int64 { return int64(i.before[255]) }

// find returns the offset of an object, or plumbing.ErrObjectNotFound.
func (i *packIndex) find(hash plumbing.Hash) (int64, error) {
	at, err := i.search(hash)
	if err != nil {
		return 0, err
	}
	const wide = 1 << 31
	var short [4]byte
	if err := i.read(short[:], indexHeader+(20+4)*i.count()+4*at); err != nil {
		return 0, err
	}
	offset := int64(binary.BigEndian.Uint32(short[:]))
	if offset < wide {
		return offset, nil
	}
	if offset -= wide; offset >= i.wide {
		return 0, errInvalidIndex
	}
	var long [8]byte
	if err := i.read(long[:], indexHeader+perObject*i.count()+8*offset); err != nil {
		return 0, err
	}
	if offset = int64(binary.BigEndian.Uint64(long[:])); offset < 0 {
		return 0, errInvalidIndex
	}
	return offset, nil
}

// search returns the entry of an object, or plumbing.ErrObjectNotFound.
func (i *packIndex) search(hash plumbing.Hash) (int64, error) {
	const near = 64 // entries on both sides of the guess
	low, high := int64(0), int64(i.before[hash[0]])
	if hash[0] > 0 {
		low = int64(i.before[hash[0]-1])
	}
	// Hashes are distributed evenly, so one read is enough in nearly all cases.
	share, _ := bits.Mul64(uint64(high-low), binary.BigEndian.Uint64(hash[1:]))
	for guess := low + int64(share); ; guess = (low + high) / 2 {
		from, to := max(guess-near, low), min(guess+near, high)
		names := make([]byte, (to-from)*int64(len(hash)))
		if err := i.read(names, indexHeader+from*int64(len(hash))); err != nil {
			return 0, err
		}
		name := func(n int) []byte { return names[n*len(hash) : (n+1)*len(hash)] }
		at, found := sort.Find(int(to-from), func(n int) int { return bytes.Compare(hash[:], name(n)) })
		switch {
		case found:
			return from + int64(at), nil
		case at == 0 && from > low:
			high = from
		case at == int(to-from) && to < high:
			low = to
		default:
			return 0, plumbing.ErrObjectNotFound
		}
	}
}

func (i *packIndex) read(into []byte, at int64) error {
	_, err := i.file.ReadAt(into, at)
	if errors.Is(err, io.EOF) {
		return errInvalidIndex
	}
	return err
}
