package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	kustomize "sigs.k8s.io/kustomize/api/types"

	"github.com/fluxkit/flux/internal/budget"
)

// noteSources records the encrypted files that the secretGenerators of a kustomization read, so
// that they are decrypted when kustomize reads them.
func (f *files) noteSources(folder string, text []byte) error {
	var k kustomize.Kustomization
	if budget.Unmarshal("", text, &k) != nil {
		return nil // kustomize reports the error
	}
	if f.encrypted == nil {
		f.encrypted = map[string]string{}
	}
	for _, generator := range k.SecretGenerator {
		for _, source := range generator.FileSources {
			key, file, keyed := strings.Cut(source, "=")
			if !keyed {
				key, file = path.Base(source), source
			}
			format := formatOf(file)
			if format == "binary" {
				format = formatOf(key)
			}
			if err := f.noteSource(path.Join(folder, file), format); err != nil {
				return err
			}
		}
		for _, file := range append(generator.EnvSources, generator.EnvSource) {
			format := formatOf(file)
			if format == "binary" {
				format = "dotenv"
			}
			if err := f.noteSource(path.Join(folder, file), format); file != "" && err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *files) noteSource(name, format string) error {
	if info, err := fs.Stat(f.tree, name); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil // kustomize reports the error
	}
	text, err := fs.ReadFile(f.tree, name)
	if err != nil {
		return fmt.Errorf("reading a source of a secretGenerator: %w", err)
	}
	if encryptedFile(text) {
		f.encrypted[name] = format
	}
	return nil
}
