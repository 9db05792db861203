package main

import "github.com/fluxkit/flux/internal/testgithost"

// scriptGitLab is a GitLab where ada owns the group acme, with the token s3cret.
func scriptGitLab() (scriptHost, *testgithost.Server, error) {
	g, err := testgithost.OpenGitLab(`
user ada
token s3cret ada api
group acme private ada=owner
group acme/platform private
group acme/operators private
group acme/auditors private
`)
	if err != nil {
		return nil, nil, err
	}
	return g, g.Server, nil
}

// scriptBitbucket is a Bitbucket where ada administers the project PLAT, with
// the token s3cret.
func scriptBitbucket() (scriptHost, *testgithost.Server, error) {
	b, err := testgithost.OpenBitbucket(`
user ada
token s3cret ada admin
group operators
group auditors
project PLAT Platform_Team ada=admin
`)
	if err != nil {
		return nil, nil, err
	}
	return b, b.Server, nil
}
