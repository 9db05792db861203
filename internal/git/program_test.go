package git

import "testing"

// TestCauseIn has what git prints when it cannot fetch.
func TestCauseIn(t *testing.T) {
	t.Parallel()
	const unread = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n"
	for text, want := range map[string]string{
		"":                                    "",
		"fatal: couldn't find remote ref x\n": "couldn't find remote ref x",
		"Host key for h has changed and you have requested strict checking.\r\nHost key verification failed.\r\n" + unread: "Host key verification failed.",
		"git@h: Permission denied (publickey).\r\n" + unread:                                                               "git@h: Permission denied (publickey).",
		"Warning: Permanently added 'h' (ED25519) to the list of known hosts.\r\nERROR: Repository not found.\n" + unread:  "ERROR: Repository not found.",
		"Connection reset by 127.0.0.1 port 22\r\n" + unread:                                                               "Connection reset by 127.0.0.1 port 22",
		// Nothing else is known.
		unread: "Could not read from remote repository.",
		"fatal: out of disk space\nfetch-pack: unexpected disconnect while reading sideband packet\nfatal: protocol error: bad pack header\n": "out of disk space",
		"error: RPC failed; HTTP 503 curl 22 The requested URL returned error: 503\nfatal: expected flush after ref listing\n":                "RPC failed; HTTP 503 curl 22 The requested URL returned error: 503",
		"error: RPC failed; curl 18 transfer closed with 99983 bytes remaining to read\nerror: 247 bytes of body are still expected\n":        "RPC failed; curl 18 transfer closed with 99983 bytes remaining to read",
		"remote: <html>Service Unavailable</html>\nfatal: unable to access 'https://h/r/': The requested URL returned error: 503\n":           "unable to access 'https://h/r/': The requested URL returned error: 503",
		"fatal: unable to access 'https://me:s3cret-token@h/r/': Could not resolve host: h\n":                                                 "unable to access 'https://me:*****@h/r/': Could not resolve host: h",
		"fatal: couldn't find remote ref early EOF\n":          "couldn't find remote ref early EOF",
		"fatal: bad object: protocol error: bad pack header\n": "bad object: protocol error: bad pack header",
		"remote: fatal: the server says this\nfatal: early EOF\nfatal: fetch-pack: invalid index-pack output\nerror: cannot lock ref 'refs/heads/x'\n": "cannot lock ref 'refs/heads/x'",
	} {
		if got := causeIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
