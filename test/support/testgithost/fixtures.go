package testgithost

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/hint"
)

// KeyOne and KeyTwo are public keys.
const (
	KeyOne = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILkYXU2fVeO4/0rDCSsswP5iIX2+B6tv15YT3KObgyDl"
	KeyTwo = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
)

// GitLabPeople is a GitLab with users, groups and tokens of all kinds.
const GitLabPeople = `
user alice
user bob
user root admin
group acme private alice=owner bob=developer
group acme/platform private
group acme/operators private
group public-acme public alice=maintainer bob=developer creation=developer
group closed private alice=owner creation=noone
group locked private alice=owner sharelock
token alice-api alice api
token alice-read alice read_api
token alice-git alice read_api,write_repository
token alice-user alice read_user
token alice-old alice api expired
token alice-gone alice api revoked
token bob-api bob api
token root-api root api
`

// BitbucketPeople is a Bitbucket with projects, users and tokens of all kinds. The
// name of project PLAT is "Platform Team".
const BitbucketPeople = `
user alice
user bob
group operators
group dev ops
group readers
project PLAT Platform_Team alice=admin bob=write
project OTHER Other bob=read
project TWIN Twins alice=admin
project TWIN2 Twins alice=admin
token alice-admin alice admin
token alice-write alice write
token alice-read alice read
token alice-old alice admin expired
token bob-admin bob admin
`

// State returns the state of a host.
func State(t *testing.T, host interface{ State() (string, error) }) string {
	t.Helper()
	text, err := host.State()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// CheckError compares an error, which must contain a fix, with the expected one.
func CheckError(t *testing.T, err error, want, remedy string) {
	t.Helper()
	var known *hint.Error
	switch {
	case err == nil:
		t.Errorf("no error, not %q", want)
	case !errors.As(err, &known):
		t.Errorf("no remedy for %v", err)
	case err.Error() != want:
		t.Errorf("the error\n%s\nis not\n%s", err, want)
	case !strings.Contains(known.Hint, remedy) || remedy == "":
		t.Errorf("the hint %q does not contain %q", known.Hint, remedy)
	}
}
