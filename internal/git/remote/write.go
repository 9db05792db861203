package remote

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// writer stores objects and records those that are missing on the server.
type writer struct {
	store  storer.EncodedObjectStorer
	added  []plumbing.Hash
	unsent map[plumbing.Hash]bool
}

// tree stores an entry and all changed files and directories below it.
func (w *writer) tree(n *filetree.Node) (plumbing.Hash, error) {
	if !n.Changed() {
		return n.Hash()
	}
	if n.File != nil {
		content, err := n.File.Read()
		if err != nil {
			return plumbing.ZeroHash, err
		}
		return w.save(plumbing.BlobObject, content)
	}
	entries, err := n.Entries()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for _, entry := range entries {
		if _, err := w.tree(entry); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	text, err := n.Encode()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return w.save(plumbing.TreeObject, text)
}

// save stores an object unless it is already stored.
func (w *writer) save(t plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	encoded := w.store.NewEncodedObject()
	encoded.SetType(t)
	into, err := encoded.Writer()
	if err == nil {
		_, err = into.Write(content)
		err = errors.Join(err, into.Close())
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encoding a Git object: %w", err)
	}
	hash := encoded.Hash()
	stored := w.store.HasEncodedObject(hash) == nil
	if stored && !w.unsent[hash] {
		return hash, nil
	}
	if !stored {
		if _, err := w.store.SetEncodedObject(encoded); err != nil {
			return hash, fmt.Errorf("storing a Git object: %w", err)
		}
	}
	w.unsent[hash] = true
	w.added = append(w.added, hash)
	return hash, nil
}
