package script_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/test/support/testregistry"
)

// untouched checks that names, contents and times in a folder are those of the start
// of the script: untouched FOLDER
func untouched(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: untouched FOLDER")
	}
	var state strings.Builder
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		state.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			state.Write(content)
			return err
		}
		return nil
	}))
	note := ts.MkAbs("." + strings.ReplaceAll(args[0], "/", "_") + ".state")
	before, err := os.ReadFile(note)
	if os.IsNotExist(err) {
		ts.Check(os.WriteFile(note, []byte(state.String()), 0o600))
		return
	}
	ts.Check(err)
	if string(before) != state.String() {
		ts.Fatalf("%s has been changed", args[0])
	}
}

// publish puts the files of a folder into a registry of the script's own, the
// address of which becomes $REGISTRY: publish FOLDER NAME:TAG
func publish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: publish FOLDER NAME:TAG")
	}
	var archive bytes.Buffer
	ts.Check(sourcetree.Artifact(context.Background(), &archive, ts.MkAbs(args[0]), sourcetree.ArtifactOptions{}))
	r := testregistry.Start()
	ts.Defer(r.Close)
	ts.Check(r.Push(args[1], archive.Bytes()))
	ts.Setenv("REGISTRY", r.Host())
}

// commitFolder commits all files of a folder, and makes a tag of it: commit FOLDER
// TAG. The first one makes the repository, whose remote is
// https://example.com/fleet.git.
func commitFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: commit FOLDER TAG")
	}
	repository, err := git.PlainOpen(ts.MkAbs(args[0]))
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repository, err = git.PlainInitWithOptions(ts.MkAbs(args[0]), &git.PlainInitOptions{
			InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName("main")},
		})
		ts.Check(err)
		_, err = repository.CreateRemote(&config.RemoteConfig{Name: "origin", URLs: []string{"https://example.com/fleet.git"}})
	}
	ts.Check(err)
	work, err := repository.Worktree()
	ts.Check(err)
	ts.Check(work.AddWithOptions(&git.AddOptions{All: true}))
	who := &object.Signature{Name: "test", Email: "test@example.com", When: time.Unix(1700000000, 0)}
	hash, err := work.Commit(args[1], &git.CommitOptions{Author: who})
	ts.Check(err)
	_, err = repository.CreateTag(args[1], hash, nil)
	ts.Check(err)
}
