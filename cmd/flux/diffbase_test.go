package main

import (
	"errors"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/testscript"
)

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
