package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// stagedPrefix is the prefix of the names of temporary files. No plugin or receipt has a name with this prefix.
const stagedPrefix = ".flux-plugin-"

const (
	downloadSuffix = ".download"
	programSuffix  = ".program"
	receiptSuffix  = ".receipt"
)

// staged contains the paths of the temporary files of an installation. They are in the plugin
// directory, so that they can be renamed atomically.
type staged struct {
	download, program, receipt   string
	targetProgram, targetReceipt string
}

func (f Directory) staged(name string) staged {
	at := func(suffix string) string { return filepath.Join(f.Path, stagedPrefix+name+suffix) }
	return staged{
		download: at(downloadSuffix), program: at(programSuffix), receipt: at(receiptSuffix),
		targetProgram: filepath.Join(f.Path, fileName(name)), targetReceipt: receiptPath(f.Path, name),
	}
}

// commit renames the program and then its receipt to their final names. If the process is killed
// between the renames, recover completes the installation.
func (s staged) commit() error {
	if err := os.Rename(s.program, s.targetProgram); err != nil {
		return fmt.Errorf("installing the plugin: %w", err)
	}
	if err := os.Rename(s.receipt, s.targetReceipt); err != nil {
		return fmt.Errorf("installing the receipt of the plugin: %w", err)
	}
	return nil
}

// remove removes the remaining temporary files.
func (s staged) remove() error {
	var failed []error
	// Remove the program last: while it exists, recover does not treat the receipt
	// as the receipt of an installed program.
	for _, path := range []string{s.download, s.receipt, s.program} {
		if err := os.Remove(path); err != nil && !isMissing(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// recover completes installations that killed processes have partly committed, and removes all other temporary files.
func (f Directory) recover() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return fmt.Errorf("reading the plugin directory: %w", err)
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
				return fmt.Errorf("installing the receipt of the plugin: %w", err)
			}
		}
		if err := s.remove(); err != nil {
			return fmt.Errorf("removing temporary files: %w", err)
		}
	}
	return nil
}

// lock prevents other processes from changing the directory, and recovers the installations of
// killed processes. The kernel releases it when the process ends.
func (f Directory) lock() (unlock func() error, err error) {
	path := filepath.Join(f.Path, stagedPrefix+"lock")
	unlock, err = lockFile(path)
	if err != nil {
		if errors.Is(err, errLocked) {
			return nil, hint.Errorf("run the command again when it has finished", "another flux plugin command is changing %s", f.Path)
		}
		return nil, fmt.Errorf("locking the plugin directory: %w", err)
	}
	if err := f.recover(); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

var errLocked = errors.New("locked by another process")
