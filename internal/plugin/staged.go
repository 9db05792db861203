package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stagedPrefix is what the names of temporary files begin with: no plugin and no
// receipt is named like that.
const stagedPrefix = ".flux-plugin-"

const (
	downloadSuffix = ".download"
	programSuffix  = ".program"
	receiptSuffix  = ".receipt"
)

// staged are the temporary files of an installation. They lie in the plugin
// folder, so that a rename puts them in place at once.
type staged struct {
	download, program, receipt   string
	targetProgram, targetReceipt string
}

func (f Folder) staged(name string) staged {
	at := func(suffix string) string { return filepath.Join(f.Path, stagedPrefix+name+suffix) }
	return staged{
		download: at(downloadSuffix), program: at(programSuffix), receipt: at(receiptSuffix),
		targetProgram: filepath.Join(f.Path, fileName(name)), targetReceipt: receiptPath(f.Path, name),
	}
}

// commit puts the program and then its receipt in place. A process that is
// killed in between leaves a receipt without a program, which recover completes.
func (s staged) commit() error {
	if err := os.Rename(s.program, s.targetProgram); err != nil {
		return fmt.Errorf("putting the plugin in place: %w", err)
	}
	if err := os.Rename(s.receipt, s.targetReceipt); err != nil {
		return fmt.Errorf("putting the receipt of the plugin in place: %w", err)
	}
	return nil
}

// remove removes what is left of the temporary files.
func (s staged) remove() error {
	var failed []error
	// The program goes last: as long as it is there, recover does not take the
	// receipt for that of a program in place.
	for _, path := range []string{s.download, s.receipt, s.program} {
		if err := os.Remove(path); err != nil && !isMissing(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// recover ends the installations of processes that were killed: what was
// committed in part is completed, everything else is removed.
func (f Folder) recover() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return fmt.Errorf("reading the plugin folder: %w", err)
	}
	for _, entry := range entries {
		name, ours := strings.CutPrefix(entry.Name(), stagedPrefix)
		suffix := filepath.Ext(name)
		if !ours || !slices.Contains([]string{downloadSuffix, programSuffix, receiptSuffix}, suffix) {
			continue
		}
		s := f.staged(strings.TrimSuffix(name, suffix))
		if exists(s.receipt) && !exists(s.program) {
			if err := os.Rename(s.receipt, s.targetReceipt); err != nil {
				return fmt.Errorf("putting the receipt of the plugin in place: %w", err)
			}
		}
		if err := s.remove(); err != nil {
			return fmt.Errorf("removing temporary files: %w", err)
		}
	}
	return nil
}

// lock keeps other processes from changing the folder, and cleans up after
// those that were killed. The kernel releases it with the process.
func (f Folder) lock() (unlock func() error, err error) {
	path := filepath.Join(f.Path, stagedPrefix+"lock")
	unlock, err = lockFile(path)
	if err != nil {
		if errors.Is(err, errLocked) {
			return nil, &BusyError{f.Path}
		}
		return nil, fmt.Errorf("locking the plugin folder: %w", err)
	}
	if err := f.recover(); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

var errLocked = errors.New("locked by another process")
